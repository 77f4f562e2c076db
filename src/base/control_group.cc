#include "base/control_group.h"

#include <algorithm>
#include <fstream>
#include <sstream>

namespace pagoda {
namespace {

// "100000 100000", "max 100000" of version 2; "-1" and "100000" in two files of version 1.
std::optional<double> quota_of(const ControlGroup& group) {
  std::stringstream words;
  const auto read = [&](const char* file) {
    std::string line;
    std::getline(std::ifstream(group.folder + file), line);
    words << line << ' ';
  };
  if (group.unified) {
    read("cpu.max");
  } else {
    read("cpu.cfs_quota_us");
    read("cpu.cfs_period_us");
  }
  double quota = 0;
  double period = 0;
  if (!(words >> quota >> period) || quota <= 0 || period <= 0) return std::nullopt;
  return quota / period;
}

}  // namespace

std::vector<ControlGroup> control_groups(std::string_view controller, const std::string& root) {
  std::vector<ControlGroup> groups;
  // Lines are "hierarchy:controllers:/path"; version 2 has hierarchy 0 and no controllers.
  std::ifstream lines(root + "proc/self/cgroup");
  std::string line;
  while (std::getline(lines, line)) {
    const std::size_t first = line.find(':');
    const std::size_t second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    const bool unified = controllers.empty();
    const std::string wanted = "," + std::string(controller) + ",";
    if (!unified && ("," + controllers + ",").find(wanted) == std::string::npos) continue;
    const std::string mount =
        root + "sys/fs/cgroup" + (unified ? "" : "/" + std::string(controller));
    std::string path = line.substr(second + 1);
    if (!path.starts_with('/')) continue;
    for (;;) {
      std::string folder = mount + path;
      if (!folder.ends_with('/')) folder += '/';
      groups.push_back({std::move(folder), unified});
      if (path.empty() || path == "/") break;
      path = path.substr(0, path.rfind('/'));
    }
  }
  return groups;
}

std::optional<double> cpu_quota(const std::string& root) {
  std::optional<double> least;
  for (const ControlGroup& group : control_groups("cpu", root)) {
    const std::optional<double> quota = quota_of(group);
    if (quota) least = std::min(*quota, least.value_or(*quota));
  }
  return least;
}

}  // namespace pagoda
