#include "app/kv_element.h"

#include <map>
#include <string>
#include <vector>

namespace pagoda::app {

using kv::memory::Element;

void add_kv_element_option(CLI::App& command, std::optional<Element>& element) {
  static const std::map<std::string, std::optional<Element>> kNames = {
      {"auto", std::nullopt},  {"fp32", Element::kF32},     {"f32", Element::kF32},
      {"fp16", Element::kF16}, {"f16", Element::kF16},      {"bf16", Element::kBF16},
      {"fp8", Element::kE4M3}, {"fp8_e4m3", Element::kE4M3}};
  const auto choose = [&element](const std::vector<std::string>& names) {
    element = kNames.at(names.front());
    for (const std::string& name : names) {
      if (kNames.at(name) == element) continue;
      throw CLI::ValidationError(
          "--kv-cache-dtype", names.front() + " and " + name + ": keys and values have one type");
    }
  };
  command
      .add_option_function<std::vector<std::string>>(
          "--kv-cache-dtype", choose,
          "element type of cached keys and values (default for this CPU: bf16, or "
          "fp16 where it multiplies in fp32; on a GPU bf16; fp8 on a GPU alone)")
      ->check(CLI::IsMember({"auto", "fp32", "f32", "fp16", "f16", "bf16", "fp8", "fp8_e4m3"}))
      ->allow_extra_args(false);
}

std::string_view kv_element_name(Element element) {
  switch (element) {
    case Element::kF32:
      return "fp32";
    case Element::kF16:
      return "fp16";
    case Element::kBF16:
      return "bf16";
    case Element::kE4M3:
      return "fp8";
  }
  return "unknown";
}

}  // namespace pagoda::app
