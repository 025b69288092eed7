// Ceres: jets carry the Jacobian of a step through it. Jacobians are kept, the way back multiplies by them.
#include <ceres/jet.h>

template <class D, int N> double value(const ceres::Jet<D, N>& x) { return x.a; }
#include "number.hpp"
#include "step.hpp"

constexpr int N = NQ + NV + NU;
using Number = ceres::Jet<double, N>;
static std::vector<double> kept;  // (steps, NQ + NV, N)

extern "C" void forward(const double* x0, const double* u, long steps, double* x) {
  constexpr long n = NQ + NV;
  static std::vector<Number> jets(N);
  kept.resize(steps * n * N);
  for (long k = 0; k < n; ++k) x[k] = x0[k];
  for (long t = 0; t < steps; ++t) {
    for (long k = 0; k < N; ++k) jets[k] = Number(k < n ? x[k] : u[t * NU + k - n], k);
    step<Number>(jets.data(), jets.data() + NQ, jets.data() + n);
    for (long k = 0; k < n; ++k) {
      x[k] = jets[k].a;
      for (long j = 0; j < N; ++j) kept[(t * n + k) * N + j] = jets[k].v[j];
    }
  }
}

extern "C" void backward(const double* bar, long steps, double* x_bar, double* u_bar) {
  constexpr long n = NQ + NV;
  std::vector<double> now(bar, bar + n), before(N);
  for (long t = steps - 1; t >= 0; --t) {
    for (long j = 0; j < N; ++j) before[j] = 0.0;
    for (long k = 0; k < n; ++k)
      for (long j = 0; j < N; ++j) before[j] += now[k] * kept[(t * n + k) * N + j];
    for (long k = 0; k < n; ++k) now[k] = before[k];
    for (long k = 0; k < NU; ++k) u_bar[t * NU + k] = before[n + k];
  }
  for (long k = 0; k < n; ++k) x_bar[k] = now[k];
  kept = {};
}
