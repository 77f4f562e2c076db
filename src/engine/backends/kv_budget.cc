#include "engine/backends/kv_budget.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <fstream>
#include <optional>
#include <sstream>

#include "base/control_group.h"

namespace pagoda::engine {
namespace {

// Returns the whole number a file holds; none when the file is missing or says "max".
std::optional<std::uint64_t> number_in(const std::string& path) {
  std::ifstream file(path);
  std::string word;
  if (!(file >> word)) return std::nullopt;
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), number);
  if (error != std::errc() || end != word.data() + word.size()) return std::nullopt;
  return number;
}

// Reads "NAME: 123 kB" of /proc/meminfo, or "NAME 123" of memory.stat.
std::optional<std::uint64_t> field_of(const std::string& path, std::string_view name) {
  std::ifstream file(path);
  std::string line;
  while (std::getline(file, line)) {
    std::istringstream words(line);
    std::string key;
    std::uint64_t value = 0;
    if (words >> key >> value && key == name) return value;
  }
  return std::nullopt;
}

// Returns what one cgroup leaves: its limit less its use, page cache that can be dropped not
// counted.
std::optional<std::uint64_t> left_in_group(const std::string& folder, const char* limit_file,
                                           const char* use_file, const char* cache_field) {
  const auto limit = number_in(folder + limit_file);
  const auto use = number_in(folder + use_file);
  if (!limit || !use) return std::nullopt;
  const std::uint64_t droppable = field_of(folder + "memory.stat", cache_field).value_or(0);
  const std::uint64_t held = *use - std::min(*use, droppable);
  return *limit - std::min(*limit, held);
}

}  // namespace

Result<std::uint64_t> memory_available(const std::string& root) {
  const auto kilobytes = field_of(root + "proc/meminfo", "MemAvailable:");
  if (!kilobytes) {
    return Error{ErrorCode::kIo, fmt::format("{}proc/meminfo does not say MemAvailable", root)};
  }
  std::uint64_t available = *kilobytes * 1024;
  for (const ControlGroup& group : control_groups("memory", root)) {
    const auto left =
        group.unified ? left_in_group(group.folder, "memory.max", "memory.current", "inactive_file")
                      : left_in_group(group.folder, "memory.limit_in_bytes",
                                      "memory.usage_in_bytes", "total_inactive_file");
    if (left) available = std::min(available, *left);
  }
  return available;
}

Result<std::uint64_t> cache_bytes(std::optional<std::uint64_t> asked) {
  if (asked) return *asked;
  ASSIGN_OR_RETURN(const std::uint64_t available, memory_available());
  return static_cast<std::uint64_t>(static_cast<double>(available) * kKvMemoryShare);
}

}  // namespace pagoda::engine
