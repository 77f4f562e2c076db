// Sums of small integers, 16 outputs at a time, by what the CPU has for them. All are exact.
//
//   Codes64   [16 outputs][4 columns] unsigned bytes: a line of packed codes
//   Words16   a signed word for each output
//   I32x16, I64x16   a sum for each output
//
// kNibbleRows and kByteRows are the rows of x that are multiplied at once.
//
// A group of 32 columns is multiplied line by line; each set keeps its sums as suits it until they
// are asked for.
//
//   NibbleLine, NibbleProducts   nibbles times one limb of each x
//     add_products(products, line, x)   += line.first * x[0 to 3] + line.second * x[16 to 19]
//     add_group(sums, products, scale, zero_point, x_sums)
//                                       sums + products * scale + (x_sums[0] + x_sums[1]) *
//                                       zero_point
//   ByteLine, ByteProducts       bytes times the integers of x, high and low limbs together
//     byte_factors(limbs, room)        what a group of x is multiplied as, put into `room` if it
//                                       cannot be multiplied as it stands
//     add_products(products, line, factors, index)   += line * x[4 index to 4 index + 3]
//     to_sums(products)
#pragma once

#if defined(__AVX512VNNI__)
#include "kernels/int8_bf16/ints_avx512.h"
#elif defined(__AVX2__)
#include "kernels/int8_bf16/ints_avx2.h"
#else
#include "kernels/int8_bf16/ints_plain.h"
#endif
