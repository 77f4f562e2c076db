// The kernel sets that int8_bf16/ is compiled into.
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

}  // namespace pagoda::kernels
