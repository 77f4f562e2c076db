#include "cli/kv_eviction.h"

#include <fmt/format.h>

#include <string>
#include <vector>

namespace pagoda::cli {

void add_kv_eviction_option(CLI::App& command, const kv::EvictionPolicy*& policy) {
  std::vector<std::string> names;
  for (const kv::EvictionPolicy* const known : kv::eviction_policies()) {
    names.emplace_back(known->name);
  }
  command
      .add_option_function<std::string>(
          "--kv-eviction", [&policy](const std::string& name) { policy = kv::find_policy(name); },
          fmt::format("which cached block goes first (default {})", policy->name))
      ->check(CLI::IsMember(names));
}

}  // namespace pagoda::cli
