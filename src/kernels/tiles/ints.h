// Sums of small integers, 16 outputs at a time, by what the CPU has for them. All are exact.
//
//   Codes64   [16 outputs][4 columns] unsigned bytes: a line of packed codes
//   Words16   a signed word for each output
//   I32x16, I64x16   a sum for each output
#pragma once

#if defined(__AVX512VNNI__)
#include "kernels/tiles/ints_avx512.h"
#else
#include "kernels/tiles/ints_plain.h"
#endif
