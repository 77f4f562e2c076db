#include "inspect/kernel_report.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "kernels/select.h"
#include "terminal/json_text.h"

namespace pagoda::inspect {

std::string kernels_text() {
  const Result<const kernels::KernelSet*> chosen = kernels::select_set();
  std::string text = fmt::format("{:<10}{:>8}  {:<12}{:<14}{}\n", "kernels", "version",
                                 "products in", "this CPU", "");
  for (const kernels::KernelSet* const set : kernels::compiled_sets()) {
    const bool floats = set->numerics == kernels::Numerics::kFp32;
    const bool is_chosen = chosen.ok() && chosen.value() == set;
    text += fmt::format("{:<10}{:>8}  {:<12}{:<14}{}\n", set->name, set->version,
                        floats ? "fp32" : "bf16", set->runs_here() ? "runs it" : "lacks it",
                        is_chosen ? "chosen" : "");
  }
  if (!chosen.ok()) text += chosen.error().message + "\n";
  return text;
}

std::string kernels_json() {
  const Result<const kernels::KernelSet*> chosen = kernels::select_set();
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const kernels::KernelSet* const set : kernels::compiled_sets()) {
    list.push_back({{"name", set->name},
                    {"version", set->version},
                    {"products", set->numerics == kernels::Numerics::kFp32 ? "fp32" : "bf16"},
                    {"runs_here", set->runs_here()},
                    {"chosen", chosen.ok() && chosen.value() == set}});
  }
  return terminal::json_text(list) + "\n";
}

}  // namespace pagoda::inspect
