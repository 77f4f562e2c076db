// Process metrics under the names that Prometheus' client libraries use.
#include <dirent.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstdio>
#include <ctime>
#include <fstream>
#include <sstream>
#include <string>

#include "server/metrics/metrics.h"

namespace pagoda::server {
namespace {

double seconds(const timeval& time) {
  return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
}

// Returns 0 where the system does not say.
std::uint64_t resident_bytes() {
  std::ifstream file("/proc/self/statm");
  std::uint64_t pages_all = 0;
  std::uint64_t pages_resident = 0;
  file >> pages_all >> pages_resident;
  return pages_resident * static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
}

std::uint64_t open_files() {
  DIR* const folder = opendir("/proc/self/fd");
  if (folder == nullptr) return 0;
  std::uint64_t entries = 0;
  while (readdir(folder) != nullptr) ++entries;
  closedir(folder);
  return entries < 3 ? 0 : entries - 3;  // without this descriptor, "." and ".."
}

// Returns Unix time in seconds: the system's start plus the process's start after it.
double start_time() {
  std::ifstream file("/proc/self/stat");
  std::string text;
  std::getline(file, text);
  // The second field is a name in parentheses, which may hold anything; the 22nd is in ticks.
  const std::size_t name_end = text.rfind(')');
  if (name_end == std::string::npos) return 0;
  std::istringstream fields(text.substr(name_end + 1));
  std::string field;
  for (int i = 3; i <= 22; ++i) fields >> field;
  timespec since_boot{};
  timespec now{};
  clock_gettime(CLOCK_BOOTTIME, &since_boot);
  clock_gettime(CLOCK_REALTIME, &now);
  const auto seconds_of = [](const timespec& time) {
    return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
  };
  const double begun =
      std::strtod(field.c_str(), nullptr) / static_cast<double>(sysconf(_SC_CLK_TCK));
  return seconds_of(now) - seconds_of(since_boot) + begun;
}

}  // namespace

void write_process_metrics(Exposition& page) {
  // The same at every look: who reads it knows by it that the server was started again.
  static const double kStarted = start_time();
  rusage used{};
  getrusage(RUSAGE_SELF, &used);
  page.counter("process_cpu_seconds", "Processor time used, by the program and for it.",
               seconds(used.ru_utime) + seconds(used.ru_stime));
  page.gauge("process_resident_memory_bytes", "Memory that is resident.", resident_bytes());
  page.gauge("process_open_fds", "Files and sockets that are open.", open_files());
  page.gauge("process_start_time_seconds", "When the process started, since the epoch.", kStarted);
}

}  // namespace pagoda::server
