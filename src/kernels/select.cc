#include "kernels/select.h"

#include <fmt/format.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "kernels/cpu_features.h"
#include "kernels/fp32/kernels.h"
#include "kernels/int8_bf16/sets.h"

namespace pagoda::kernels {

namespace {

// Slowest first.
std::vector<const KernelSet*> list_sets() {
  std::vector<const KernelSet*> sets = {&ref_set(Numerics::kFp32), &ref_set(Numerics::kInt8Bf16)};
#if defined(PAGODA_HAVE_EMULATED_INT8_BF16)  // in builds with tests
#if defined(PAGODA_HAVE_X86_INT8_BF16)
  sets.push_back(&emulated::set("tiles", has_avx512));
#else
  sets.push_back(&emulated::set("tiles", [] { return true; }));
#endif
#endif
#if defined(PAGODA_HAVE_FP32_SET)
  sets.push_back(&fp32_set());
#endif
#if defined(PAGODA_HAVE_NEON_INT8_BF16)
  sets.push_back(&neon::set("neon", has_neon_i8mm_bf16));
#endif
#if defined(PAGODA_HAVE_X86_INT8_BF16)
  sets.push_back(&avx2::set("avx2", has_avx2));
  sets.push_back(&avx512::set("avx512", has_avx512));
  sets.push_back(&amx::set("amx", has_amx));
#endif
  return sets;
}

}  // namespace

std::span<const KernelSet* const> compiled_sets() {
  static const std::vector<const KernelSet*> kSets = list_sets();
  return kSets;
}

std::span<const KernelSet* const> available_sets() {
  static const std::vector<const KernelSet*> kSets = [] {
    std::vector<const KernelSet*> found;
    for (const KernelSet* const set : compiled_sets()) {
      if (set->runs_here()) found.push_back(set);
    }
    return found;
  }();
  return kSets;
}

Result<const KernelSet*> select_set(std::string_view name) {
  if (name.empty()) {
    const char* const forced = std::getenv("PAGODA_KERNELS");
    if (forced != nullptr) name = forced;
  }
  if (name.empty()) return available_sets().back();
  std::string known;
  for (const KernelSet* const set : available_sets()) {
    if (set->name == name) return set;
    known += fmt::format("{}{}", known.empty() ? "" : ", ", set->name);
  }
  return Error{
      ErrorCode::kInvalidArgument,
      fmt::format("kernel set '{}' is not available here; this CPU runs: {}", name, known)};
}

}  // namespace pagoda::kernels
