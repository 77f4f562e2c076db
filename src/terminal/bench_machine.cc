#include "terminal/bench_machine.h"

#include <fmt/format.h>
#include <sys/utsname.h>

#include <array>
#include <fstream>
#include <iterator>
#include <utility>

#include "base/thread_pool.h"
#include "terminal/version.h"

namespace pagoda::terminal {
namespace {

// Part numbers of Arm Ltd. (implementer 0x41), from the cores' reference manuals (MIDR_EL1).
constexpr std::array<std::pair<std::string_view, std::string_view>, 9> kArmCores = {{
    {"0xd03", "Cortex-A53"},
    {"0xd08", "Cortex-A72"},
    {"0xd0b", "Cortex-A76"},
    {"0xd0c", "Neoverse-N1"},
    {"0xd40", "Neoverse-V1"},
    {"0xd49", "Neoverse-N2"},
    {"0xd4f", "Neoverse-V2"},
    {"0xd84", "Neoverse-V3"},
    {"0xd8e", "Neoverse-N3"},
}};

// Returns the text behind "key :" on the first line that begins with the key; empty when there is
// none.
std::string_view value_of(std::string_view cpuinfo, std::string_view key) {
  for (std::size_t at = 0; at < cpuinfo.size();) {
    const std::size_t end = std::min(cpuinfo.find('\n', at), cpuinfo.size());
    const std::string_view line = cpuinfo.substr(at, end - at);
    at = end + 1;
    const std::size_t colon = line.find(':');
    if (!line.starts_with(key) || colon == std::string_view::npos) continue;
    if (line.substr(key.size(), colon - key.size()).find_first_not_of(" \t") !=
        std::string_view::npos) {
      continue;
    }
    const std::size_t begin = line.find_first_not_of(" \t", colon + 1);
    return begin == std::string_view::npos ? std::string_view() : line.substr(begin);
  }
  return {};
}

}  // namespace

std::string cpu_name(std::string_view cpuinfo) {
  const std::string_view name = value_of(cpuinfo, "model name");
  if (!name.empty()) return std::string(name);
  const std::string_view implementer = value_of(cpuinfo, "CPU implementer");
  const std::string_view part = value_of(cpuinfo, "CPU part");
  if (part.empty()) return "unknown";
  if (implementer == "0x41") {
    for (const auto& [number, core] : kArmCores) {
      if (part == number) return std::string(core);
    }
  }
  return fmt::format("implementer {} part {}", implementer, part);
}

BenchMachine describe_machine(std::string kernels) {
  std::ifstream stream("/proc/cpuinfo");
  const std::string cpuinfo(std::istreambuf_iterator<char>(stream), {});
  utsname system{};
  const bool known = uname(&system) == 0;
  return {.cpu = cpu_name(cpuinfo),
          .cores = usable_cores(),
          .architecture = known ? system.machine : "unknown",
          .kernels = std::move(kernels),
          .build = fmt::format("pagoda {} {}", kVersion, kBuild)};
}

}  // namespace pagoda::terminal
