// Plain numbers: no gradient; what the printed source costs by itself.
#include "number.hpp"
#include "step.hpp"

extern "C" void forward(const double* x0, const double* u, long steps, double* x) {
  for (long k = 0; k < NQ + NV; ++k) x[k] = x0[k];
  for (long t = 0; t < steps; ++t) step<double>(x, x + NQ, u + t * NU);
}
