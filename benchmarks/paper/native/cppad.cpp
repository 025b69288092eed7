// CppAD: a tape of the whole rollout, and its reverse sweep.
#include <cppad/cppad.hpp>
#include <memory>

using Number = CppAD::AD<double>;
inline double value(const Number& x) { return CppAD::Value(CppAD::Var2Par(x)); }
#include "number.hpp"
#include "step.hpp"

static std::unique_ptr<CppAD::ADFun<double>> tape;

extern "C" void forward(const double* x0, const double* u, long steps, double* x) {
  tape.reset();
  std::vector<Number> in(NQ + NV + steps * NU);
  for (long k = 0; k < NQ + NV; ++k) in[k] = x0[k];
  for (long k = 0; k < steps * NU; ++k) in[NQ + NV + k] = u[k];
  CppAD::Independent(in);
  std::vector<Number> state(in.begin(), in.begin() + NQ + NV);
  for (long t = 0; t < steps; ++t) step<Number>(state.data(), state.data() + NQ, in.data() + NQ + NV + t * NU);
  tape = std::make_unique<CppAD::ADFun<double>>(in, state);
  for (long k = 0; k < NQ + NV; ++k) x[k] = value(state[k]);
}

extern "C" void backward(const double* bar, long steps, double* x_bar, double* u_bar) {
  const std::vector<double> found = tape->Reverse(1, std::vector<double>(bar, bar + NQ + NV));
  for (long k = 0; k < NQ + NV; ++k) x_bar[k] = found[k];
  for (long k = 0; k < steps * NU; ++k) u_bar[k] = found[NQ + NV + k];
  tape.reset();
}
