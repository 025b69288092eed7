// What the printed step asks of a number type: its value, and itself without a slope. Choices are made by value.
#pragma once
#include <cmath>
#include <vector>

inline double value(double x) { return x; }

template <class T> T stop(const T& x) { return T(value(x)); }

// the nearest integer is in the low bits of x, which is that integer plus 1.5 * 2^52
template <class T> int quarter(const T& x) { return int(static_cast<long>(value(x) - 6755399441055744.0) & 3); }

// sin of an angle plus n quarter turns
template <class T> T turned(int n, const T& s, const T& c) {
  switch (n & 3) {
    case 0: return s;
    case 1: return c;
    case 2: return -s;
    default: return -c;
  }
}
using std::abs;
using std::sqrt;
