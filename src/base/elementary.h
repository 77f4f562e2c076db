// Sine, cosine, logarithm and power in double precision are written here with sums, products,
// quotients and integers, which IEEE 754 fixes to the bit. C libraries differ in the last bits from
// one host to the next, and keys and values must not.
#pragma once

namespace pagoda {

struct SineCosine {
  double sine;
  double cosine;
};

// Returns sine and cosine of any finite angle in radians, each within 0.8 ulp; NaN for others.
SineCosine sine_cosine(double angle);

// Returns the natural logarithm to the nearest double, but for one argument in 2^40 or so, where
// the result may be the second nearest. The result is -infinity at 0 and NaN below.
double natural_log(double x);

// Returns base^exponent, as near as natural_log. The base is finite and above 0, the exponent
// finite.
double power(double base, double exponent);

}  // namespace pagoda
