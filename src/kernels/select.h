// Which kernel sets this program has, and the choice among them.
#pragma once

#include <span>
#include <string_view>

#include "base/result.h"
#include "kernels/ops.h"

namespace pagoda::kernels {

// The plain set of an numerics: what every set of that numerics is compared with.
const KernelSet& ref_set(Numerics numerics = Numerics::kFp32);

// Every set that was compiled in and runs on this CPU, slowest first; the reference sets are always
// there.
std::span<const KernelSet* const> available_sets();

// All sets that were compiled in, whether this CPU runs them or not.
std::span<const KernelSet* const> compiled_sets();

// The set called `name`; when empty the one named by PAGODA_KERNELS, else the fastest.
Result<const KernelSet*> select_set(std::string_view name = {});

}  // namespace pagoda::kernels
