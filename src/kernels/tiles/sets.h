// The sets that tiles/ was compiled into, and what a CPU must have for them.
#pragma once

#include "kernels/ops.h"

namespace pagoda::kernels {

namespace amx {
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

namespace tiles {
bool has_avx512();
// Also asks the kernel for the tile registers, which it grants once per process.
bool has_amx();
// Arm's dot products and products of matrices of bytes.
bool has_i8mm();
}  // namespace tiles

}  // namespace pagoda::kernels
