#include "bench/fastest_cores.h"

#include <fmt/format.h>
#include <sched.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <thread>

#include "bench/multiply_probe.h"

namespace pagoda::bench {
namespace {

constexpr std::uint64_t kRounds = 60'000;  // two milliseconds of tiles, less of vectors
constexpr int kCoreTries = 2;              // the fastest counts

cpu_set_t set_of(std::span<const int> cores) {
  cpu_set_t set;
  CPU_ZERO(&set);
  for (const int core : cores) CPU_SET(core, &set);
  return set;
}

// `thread` 0 is the caller. One that has ended meanwhile uses no core.
Status confine(pid_t thread, std::span<const int> cores) {
  const cpu_set_t set = set_of(cores);
  if (sched_setaffinity(thread, sizeof set, &set) == 0 || errno == ESRCH) return ok_status();
  return Error{ErrorCode::kIo, fmt::format("thread {} cannot be kept to core {}: {}", thread,
                                           cores.front(), strerror(errno))};
}

Status confine_process(std::span<const int> cores) {
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/task")) {
    const std::string name = entry.path().filename().string();
    pid_t thread = 0;
    std::from_chars(name.data(), name.data() + name.size(), thread);
    RETURN_IF_ERROR(confine(thread, cores));
  }
  return ok_status();
}

// In TMAC/s, by the last of the probes: what kernels that this CPU has multiply with.
Result<double> speed_of(int core, const Clock& clock) {
  const MultiplyProbe probe = multiply_probes().back();
  double most = 0;
  Status confined = ok_status();
  std::thread([&] {
    confined = confine(0, {&core, 1});
    for (int i = 0; i < kCoreTries; ++i) {
      const std::int64_t begin_ns = clock.now_ns();
      const auto done = static_cast<double>(probe.run(kRounds));
      most = std::max(most, done * 1e-12 / seconds_between(begin_ns, clock.now_ns()));
    }
  }).join();
  RETURN_IF_ERROR(confined);
  return most;
}

}  // namespace

FastestCores::FastestCores(std::uint32_t count, const Clock& clock) : count_(count), clock_(clock) {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) != 0) return;
  for (int core = 0; core < CPU_SETSIZE; ++core) {
    if (CPU_ISSET(core, &set)) cores_.push_back(core);
  }
  chosen_ = cores_;
}

Result<double> FastestCores::choose() {
  struct CoreSpeed {
    double speed;
    int core;
  };
  std::vector<CoreSpeed> speeds;
  for (const int core : cores_) {
    ASSIGN_OR_RETURN(const double speed, speed_of(core, clock_));
    speeds.push_back({speed, core});
  }
  std::ranges::stable_sort(speeds, std::ranges::greater(), &CoreSpeed::speed);
  speeds.resize(std::min<std::size_t>(speeds.size(), count_));
  chosen_.clear();
  for (const CoreSpeed& each : speeds) chosen_.push_back(each.core);
  RETURN_IF_ERROR(confine_process(chosen_));
  return speeds.back().speed;
}

Result<double> FastestCores::speed_now() const {
  double least = std::numeric_limits<double>::infinity();
  for (const int core : chosen_) {
    ASSIGN_OR_RETURN(const double speed, speed_of(core, clock_));
    least = std::min(least, speed);
  }
  return least;
}

}  // namespace pagoda::bench
