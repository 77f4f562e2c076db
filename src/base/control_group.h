// The control groups (cgroups, of version 1 and 2) that bound this process.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace pagoda {

struct ControlGroup {
  std::string folder;  // ends with '/'
  bool unified;        // of version 2
};

// Returns the process's own group and all above it, whose limits hold too; a container shows the
// top alone. `controller` is "cpu" or "memory", `root` is "/" but in tests.
std::vector<ControlGroup> control_groups(std::string_view controller,
                                         const std::string& root = "/");

// Returns the least CPU quota of the process's groups, in cores; nothing where there is none.
std::optional<double> cpu_quota(const std::string& root = "/");

}  // namespace pagoda
