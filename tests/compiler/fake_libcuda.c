/* A libcuda for tests: memory of the host, "machine code" that is the PTX itself, launches handed to a callback.
   fake_fail("cuX", n, code) makes the n-th coming call of cuX return code; fake_log() names all calls so far. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef int (*launch_callback)(const char *code, const char *name, unsigned grid, unsigned block, void *stream, void **words);

static launch_callback on_launch;
static char failing[64], log_text[1 << 20];
static int fail_after, fail_code, devices = 1, pools = 1, capability = 90, depth;
static int64_t used;

void fake_launches(launch_callback f) { on_launch = f; }
void fake_fail(const char *name, int n, int code) { snprintf(failing, sizeof failing, "%s", name); fail_after = n; fail_code = code; }
void fake_machine(int n, int with_pools, int cc) { devices = n; pools = with_pools; capability = cc; }
const char *fake_log(void) { return log_text; }
void fake_clear(void) { log_text[0] = 0; failing[0] = 0; }
int fake_depth(void) { return depth; }

static int enter(const char *name) {
    size_t n = strlen(log_text);
    if (n + strlen(name) + 2 < sizeof log_text) { memcpy(log_text + n, name, strlen(name)); strcpy(log_text + n + strlen(name), "\n"); }
    if (failing[0] && !strcmp(name, failing) && --fail_after == 0) return fail_code;
    return 0;
}
#define ENTER { int r = enter(__func__); if (r) return r; }
#define INSIDE { if (depth <= 0) return 201; } /* no context */

struct block { int64_t size; char padding[56]; };
static void *get(size_t n) { struct block *b = aligned_alloc(64, (n + 64 + 63) / 64 * 64); b->size = n; used += n; memset(b + 1, 0xff, n); return b + 1; }
static void put(void *p) { struct block *b = (struct block *)p - 1; used -= b->size; free(b); }

int cuInit(unsigned flags) { ENTER return flags ? 1 : 0; }
int cuDriverGetVersion(int *v) { ENTER *v = 12040; return 0; }
int cuDeviceGetCount(int *n) { ENTER *n = devices; return 0; }
int cuDeviceGet(int *d, int k) { ENTER *d = k; return k < devices ? 0 : 101; }
int cuDeviceGetName(char *s, int n, int d) { ENTER snprintf(s, n, "Fake GPU %d", d); return 0; }
int cuDeviceGetAttribute(int *v, int a, int d) {
    ENTER
    switch (a) {
    case 16: *v = 3; return 0;
    case 75: *v = capability / 10; return 0;
    case 76: *v = capability % 10; return 0;
    case 115: *v = pools; return 0;
    }
    return 1;
}
int cuDevicePrimaryCtxRetain(void **c, int d) { ENTER *c = (void *)(intptr_t)(d + 77); return 0; }
int cuCtxPushCurrent_v2(void *c) { ENTER if ((intptr_t)c < 77) return 201; depth++; return 0; }
int cuCtxPopCurrent_v2(void **c) { ENTER INSIDE depth--; *c = 0; return 0; }
int cuCtxSynchronize(void) { ENTER INSIDE return 0; }
int cuGetErrorString(int e, const char **s) { *s = e == 2 ? "out of memory" : "some error"; return e == 999 ? 1 : 0; }
int cuMemGetInfo_v2(size_t *f, size_t *t) { ENTER INSIDE *f = 1 << 30; *t = 1 << 30; return 0; }
int cuMemAlloc_v2(uint64_t *p, size_t n) { ENTER INSIDE if (!n || pools) return 1; *p = (uint64_t)get(n); return 0; }
int cuMemFree_v2(uint64_t p) { ENTER INSIDE put((void *)p); return 0; }
int cuMemAllocAsync(uint64_t *p, size_t n, void *s) { ENTER INSIDE if (!n || !pools) return 1; *p = (uint64_t)get(n); return 0; }
int cuMemFreeAsync(uint64_t p, void *s) { ENTER INSIDE put((void *)p); return 0; }
int cuDeviceGetDefaultMemPool(void **p, int d) { ENTER *p = (void *)5; return pools ? 0 : 801; }
int cuMemPoolSetAttribute(void *p, int a, void *v) { ENTER return p == (void *)5 && a == 4 && *(uint64_t *)v == UINT64_MAX ? 0 : 1; }
int cuMemPoolGetAttribute(void *p, int a, void *v) { ENTER if (p != (void *)5 || a != 7) return 1; *(uint64_t *)v = used; return 0; }
int cuMemPoolTrimTo(void *p, size_t n) { ENTER return p == (void *)5 && n == 0 ? 0 : 1; }
int cuMemcpyHtoDAsync_v2(uint64_t to, const void *from, size_t n, void *s) { ENTER INSIDE memcpy((void *)to, from, n); return 0; }
int cuMemcpyDtoHAsync_v2(void *to, uint64_t from, size_t n, void *s) { ENTER INSIDE memcpy(to, (void *)from, n); return 0; }
int cuMemcpyDtoDAsync_v2(uint64_t to, uint64_t from, size_t n, void *s) { ENTER INSIDE memcpy((void *)to, (void *)from, n); return 0; }
int cuMemcpy2DAsync_v2(const int64_t *c, void *s) {
    ENTER INSIDE
    for (int64_t k = 0; k < c[15]; k++) memcpy((char *)c[11] + k * c[13], (char *)c[4] + k * c[6], c[14]);
    return 0;
}
int cuMemHostAlloc(void **p, size_t n, unsigned flags) { ENTER INSIDE *p = get(n); return 0; }
int cuLaunchHostFunc(void *s, void (*f)(void *), void *data) { ENTER INSIDE f(data); return 0; }
int cuMemsetD8Async(uint64_t to, unsigned char c, size_t n, void *s) { ENTER INSIDE memset((void *)to, c, n); return 0; }
int cuStreamCreate(void **s, unsigned f) { ENTER INSIDE *s = (void *)11; return f == 1 ? 0 : 1; }
int cuStreamDestroy_v2(void *s) { ENTER INSIDE return s == (void *)11 ? 0 : 1; }
int cuStreamSynchronize(void *s) { ENTER INSIDE return 0; }
int cuEventCreate(void **e, unsigned f) { ENTER INSIDE *e = malloc(8); return 0; }
int cuEventDestroy_v2(void *e) { ENTER INSIDE free(e); return 0; }
int cuEventRecord(void *e, void *s) { ENTER INSIDE return e ? 0 : 1; }
int cuEventSynchronize(void *e) { ENTER INSIDE return e ? 0 : 1; }
int cuEventElapsedTime(float *t, void *a, void *b) { ENTER INSIDE *t = 2.5f; return a && b ? 0 : 1; }

struct link { char *code; size_t size; char *log; };
int cuLinkCreate_v2(unsigned n, int *options, void **values, void **out) {
    ENTER INSIDE
    struct link *l = calloc(1, sizeof *l);
    size_t room = 0;
    for (unsigned k = 0; k < n; k++) {
        if (options[k] == 5) l->log = values[k];
        else if (options[k] == 6) room = (size_t)values[k];
        else if (options[k] != 0 || (size_t)values[k] < 16 || (size_t)values[k] > 255) { free(l); return 1; }
    }
    if (!l->log || room < 1000) { free(l); return 1; }
    *out = l;
    return 0;
}
int cuLinkAddData_v2(void *state, int type, void *data, size_t n, const char *name, unsigned k, void *o, void *v) {
    struct link *l = state;
    int r = enter(__func__);
    if (r) { strcpy(l->log, "ptxas error: line 3"); return r; }
    if (type != 1 || !n || ((char *)data)[n - 1] || strlen(data) != n - 1 || k || o || v) return 1;
    l->code = malloc(n); l->size = n; memcpy(l->code, data, n);
    return 0;
}
int cuLinkComplete(void *state, void **code, size_t *n) { ENTER struct link *l = state; *code = l->code; *n = l->size; return 0; }
int cuLinkDestroy(void *state) { ENTER struct link *l = state; free(l->code); free(l); return 0; }

struct function { char *code; char name[128]; };
int cuModuleLoadData(void **m, const void *code) { ENTER INSIDE *m = strdup(code); return 0; }
int cuModuleGetFunction(void **f, void *m, const char *name) {
    ENTER INSIDE
    struct function *g = malloc(sizeof *g);
    g->code = m; snprintf(g->name, sizeof g->name, "%s", name);
    *f = g;
    return strstr(m, name) ? 0 : 500;
}
int cuFuncGetAttribute(int *v, int a, void *f) { ENTER *v = a == 4 ? 160 : a == 3 ? 24 : -1; return 0; }
int cuFuncSetAttribute(void *f, int a, int v) { ENTER return a == 9 && v == 0 ? 0 : 1; }
int cuLaunchKernel(void *f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned shared,
                   void *stream, void **params, void **extra) {
    ENTER INSIDE
    struct function *g = f;
    if (gy != 1 || gz != 1 || by != 1 || bz != 1 || shared || extra || !gx || !bx || bx > 1024) return 1;
    return on_launch ? on_launch(g->code, g->name, gx, bx, stream, params) : 0;
}
