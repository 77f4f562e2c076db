// The kernel sets that int8_bf16/ is compiled into, and tests of what a CPU must have for them.
#pragma once

#include "kernels/ops.h"

namespace pagoda::kernels {

namespace amx {
const KernelSet& set(std::string_view name, bool (*runs_here)());
}
namespace avx2 {
const KernelSet& set(std::string_view name, bool (*runs_here)());
}
namespace avx512 {
const KernelSet& set(std::string_view name, bool (*runs_here)());
}
namespace neon {
const KernelSet& set(std::string_view name, bool (*runs_here)());
}
namespace emulated {
const KernelSet& set(std::string_view name, bool (*runs_here)());
}

namespace int8_bf16 {
bool has_avx2();
bool has_avx512();
// Also asks the operating system for the tile registers, which it grants once per process.
bool has_amx();
// Whether the CPU has dot products and matrix products of bytes (i8mm) and of bf16.
bool has_neon_i8mm_bf16();
}  // namespace int8_bf16

}  // namespace pagoda::kernels
