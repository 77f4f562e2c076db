// Which kernel sets this program has, and the choice among them.
#pragma once

#include <span>
#include <string_view>

#include "base/result.h"
#include "kernels/ops.h"

namespace pagoda::kernels {

const KernelSet& ref_set();

// Every set that was compiled in and runs on this CPU, slowest first; ref is always there.
std::span<const KernelSet* const> available_sets();

// The set called `name`; when empty the one named by PAGODA_KERNELS, else the fastest.
Result<const KernelSet*> select_set(std::string_view name = {});

}  // namespace pagoda::kernels
