// Tests for features of this CPU. The instructions of a kernel set are compiled for its own sources
// alone, so that these run everywhere; on other architectures they are false.
#pragma once

namespace pagoda::kernels {

bool has_avx2();  // with fused multiply-add and conversions of fp16
bool has_avx512();
// Also asks the operating system for the tile registers, which it grants once per process.
bool has_amx();
// Whether the CPU has dot products and matrix products of bytes (i8mm) and of bf16.
bool has_neon_i8mm_bf16();

}  // namespace pagoda::kernels
