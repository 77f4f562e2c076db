#include "kernels/select.h"

#include <fmt/format.h>

#include <cstdlib>
#include <string>
#include <vector>

namespace pagoda::kernels {

#ifdef PAGODA_HAVE_CPU_SET
const KernelSet& cpu_set();
#endif

std::span<const KernelSet* const> available_sets() {
  static const std::vector<const KernelSet*> kSets = [] {
    std::vector<const KernelSet*> found = {&ref_set()};
#ifdef PAGODA_HAVE_CPU_SET
    if (cpu_set().runs_here()) found.push_back(&cpu_set());
#endif
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
