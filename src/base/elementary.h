// Sine, cosine, logarithm and power in double precision by our own operations: sums, products,
// quotients and integers, which IEEE 754 fixes to the bit. The functions of C libraries differ in
// their last bits from one host to the next; what goes into keys and values must not.
#pragma once

namespace pagoda {

struct SineCosine {
  double sine;
  double cosine;
};

// Of any finite angle in radians, each within 0.8 ulp; NaN for others.
SineCosine sine_cosine(double angle);

// The natural logarithm to the nearest double, but for one argument in 2^40 or so, where it may be
// the second nearest. -infinity at 0, NaN below.
double natural_log(double x);

// base^exponent, as near as natural_log. The base is finite and above 0, the exponent finite.
double power(double base, double exponent);

}  // namespace pagoda
