// Subnormals as zeros, by the control register of x86.
#pragma once

#include <immintrin.h>

#include <cstdint>

namespace pagoda::kernels::PAGODA_ISA {

// While an object lives, the thread's floating point counts subnormals as zero.
class FlushSubnormals {
 public:
  FlushSubnormals() : outer_(_mm_getcsr()) { _mm_setcsr(outer_ | 0x8040); }  // FTZ and DAZ
  ~FlushSubnormals() { _mm_setcsr(outer_); }
  FlushSubnormals(const FlushSubnormals&) = delete;
  FlushSubnormals& operator=(const FlushSubnormals&) = delete;

 private:
  std::uint32_t outer_;
};

}  // namespace pagoda::kernels::PAGODA_ISA
