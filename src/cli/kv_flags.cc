#include "cli/kv_flags.h"

#include <fmt/format.h>

#include <map>
#include <string>
#include <vector>

namespace pagoda::cli {

using kv::memory::Element;

void add_kv_element_option(const CommandSpec& command, std::optional<Element>& element) {
  static const std::map<std::string, std::optional<Element>> kNames = {
      {"auto", std::nullopt},  {"fp32", Element::kF32},     {"f32", Element::kF32},
      {"fp16", Element::kF16}, {"f16", Element::kF16},      {"bf16", Element::kBF16},
      {"fp8", Element::kE4M3}, {"fp8_e4m3", Element::kE4M3}};
  const auto choose = [&element](const std::vector<std::string>& names) -> std::string {
    element = kNames.at(names.front());
    for (const std::string& name : names) {
      if (kNames.at(name) == element) continue;
      return names.front() + " and " + name + ": keys and values have one type";
    }
    return {};
  };
  command
      .add_parsed_list("--kv-cache-dtype", choose,
                       "element type of cached keys and values; also -ctk and -ctv (default for "
                       "this CPU: bf16, or "
                       "fp16 where it multiplies in fp32; on a GPU bf16; fp8 on a GPU alone)")
      .among({"auto", "fp32", "f32", "fp16", "f16", "bf16", "fp8", "fp8_e4m3"})
      .one_value_each();
}

void add_kv_eviction_option(const CommandSpec& command, const kv::EvictionPolicy*& policy) {
  std::vector<std::string> names;
  for (const kv::EvictionPolicy* const known : kv::eviction_policies()) {
    names.emplace_back(known->name);
  }
  const auto choose = [&policy](const std::string& name) -> std::string {
    policy = kv::find_policy(name);
    return {};
  };
  command
      .add_parsed("--kv-eviction", choose,
                  fmt::format("which cached block goes first (default {})", policy->name))
      .among(names);
}

}  // namespace pagoda::cli
