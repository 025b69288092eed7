// CasADi: its generated step and reverse derivative, called step by step; states are kept.
#include <stdlib.h>
#include <string.h>

struct memory {
  const casadi_real** arg;
  casadi_real** res;
  casadi_int* iw;
  casadi_real* w;
};

static struct memory room(int (*work)(casadi_int*, casadi_int*, casadi_int*, casadi_int*)) {
  casadi_int arg, res, iw, w;
  struct memory m;
  work(&arg, &res, &iw, &w);
  m.arg = malloc(arg * sizeof(*m.arg));
  m.res = malloc(res * sizeof(*m.res));
  m.iw = malloc(iw * sizeof(*m.iw));
  m.w = malloc(w * sizeof(*m.w));
  return m;
}

static struct memory there, back;
static double* kept;            // (steps + 1, NX)
static const double* controls;  // (steps, NU)

void forward(const double* x0, const double* u, long steps, double* x) {
  if (!there.arg) there = room(turn_ahead_work);
  kept = malloc((steps + 1) * NX * sizeof(double));
  controls = u;
  memcpy(kept, x0, NX * sizeof(double));
  for (long t = 0; t < steps; ++t) {
    there.arg[0] = kept + t * NX;
    there.arg[1] = u + t * NU;
    there.res[0] = kept + (t + 1) * NX;
    turn_ahead(there.arg, there.res, there.iw, there.w, 0);
  }
  memcpy(x, kept + steps * NX, NX * sizeof(double));
}

void backward(const double* bar, long steps, double* x_bar, double* u_bar) {
  double bars[NX + NU];
  if (!back.arg) back = room(turn_back_work);
  memcpy(x_bar, bar, NX * sizeof(double));
  for (long t = steps - 1; t >= 0; --t) {
    back.arg[0] = kept + t * NX;
    back.arg[1] = controls + t * NU;
    back.arg[2] = x_bar;
    back.res[0] = bars;
    turn_back(back.arg, back.res, back.iw, back.w, 0);
    memcpy(x_bar, bars, NX * sizeof(double));
    memcpy(u_bar + t * NU, bars + NX, NU * sizeof(double));
  }
  free(kept);
}
