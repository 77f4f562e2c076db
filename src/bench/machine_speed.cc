#include "bench/machine_speed.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>

#include "base/assert.h"
#include "base/byte_size.h"
#include "bench/multiply_probe.h"

namespace pagoda::bench {
namespace {

constexpr std::uint64_t kMebibyte = std::uint64_t{1} << 20;
constexpr std::array<std::uint64_t, 3> kCacheSizes = {kMebibyte, 16 * kMebibyte, 128 * kMebibyte};
constexpr std::uint64_t kLargeBytes = 512 * kMebibyte;
constexpr int kSpeedTries = 5;                        // the fastest counts
constexpr std::uint64_t kReadBytes = 64 * kMebibyte;  // at least, in a try
constexpr std::uint64_t kMultiplyRounds = 500'000;    // a millisecond of vectors, ten of tiles

std::atomic<std::uint64_t> result_sink{0};

// Twice what the last cache says it holds, and no more than an eighth of memory.
std::uint64_t beyond_caches() {
#ifdef _SC_LEVEL3_CACHE_SIZE
  const long cache = std::max(sysconf(_SC_LEVEL3_CACHE_SIZE), 0L);
#else
  const long cache = 0;
#endif
  const auto memory = static_cast<std::uint64_t>(std::max(sysconf(_SC_PHYS_PAGES), 1L)) *
                      static_cast<std::uint64_t>(std::max(sysconf(_SC_PAGESIZE), 1L));
  return std::min(std::max(kLargeBytes, 2 * static_cast<std::uint64_t>(cache)), memory / 8);
}

// Eight sums of eight words: enough loads at once for the widest vectors.
[[gnu::always_inline]] inline std::uint64_t sum_words(const std::uint64_t* words,
                                                      std::size_t count) {
  std::array<std::uint64_t, 64> sums{};
  for (std::size_t i = 0; i + sums.size() <= count; i += sums.size()) {
    for (std::size_t lane = 0; lane < sums.size(); ++lane) sums[lane] += words[i + lane];
  }
  std::uint64_t all = 0;
  for (const std::uint64_t sum : sums) all += sum;
  return all;
}

#if defined(__x86_64__)
// Compilers take vectors of 32 bytes unless they are told to take those of 64, each in its words.
#if defined(__clang__)
[[gnu::target("avx512f"), clang::min_vector_width(512)]]
#else
[[gnu::target("avx512f,prefer-vector-width=512")]]
#endif
std::uint64_t
sum_wide(const std::uint64_t* words, std::size_t count) {
  return sum_words(words, count);
}
[[gnu::target("avx2")]] std::uint64_t sum_avx2(const std::uint64_t* words, std::size_t count) {
  return sum_words(words, count);
}
std::uint64_t read_words(const std::uint64_t* words, std::size_t count) {
  if (__builtin_cpu_supports("avx512f")) return sum_wide(words, count);
  if (__builtin_cpu_supports("avx2")) return sum_avx2(words, count);
  return sum_words(words, count);
}
#else
std::uint64_t read_words(const std::uint64_t* words, std::size_t count) {
  return sum_words(words, count);
}
#endif

std::string sentence(const std::string& what, double least, double most, const char* unit) {
  return fmt::format("{} moved by {:.0f} %, from {:.3g} to {:.3g} {}", what,
                     100 * (most / least - 1), least, most, unit);
}

}  // namespace

MachineSpeed best_speed(std::span<const MachineSpeed> seen) {
  ASSERT(!seen.empty(), "something was measured");
  MachineSpeed best = seen.front();
  for (const MachineSpeed& speed : seen) {
    for (std::size_t i = 0; i < best.reads.size(); ++i) {
      double& most = best.reads[i].gigabytes_per_second;
      most = std::max(most, speed.reads[i].gigabytes_per_second);
    }
    for (std::size_t i = 0; i < best.multiplies.size(); ++i) {
      double& most = best.multiplies[i].tera_per_second;
      most = std::max(most, speed.multiplies[i].tera_per_second);
    }
  }
  return best;
}

SpeedLimit speed_limit(const MachineSpeed& speed, std::uint32_t threads, std::uint64_t bytes,
                       std::uint64_t set_bytes, std::uint64_t multiply_adds) {
  const double reading = static_cast<double>(bytes) * 1e-9 / read_speed(speed, set_bytes, threads);
  const double multiplying =
      static_cast<double>(multiply_adds) * 1e-12 / multiply_speed(speed, threads);
  return {std::max(reading, multiplying), reading >= multiplying};
}

double read_speed(const MachineSpeed& speed, std::uint64_t bytes, std::uint32_t threads) {
  double found = 0;
  for (const ReadSpeed& read : speed.reads) {
    if (read.threads != threads) continue;
    found = read.gigabytes_per_second;
    if (read.bytes >= bytes) break;
  }
  return found;
}

double multiply_speed(const MachineSpeed& speed, std::uint32_t threads) {
  double most = 0;
  for (const MultiplySpeed& multiply : speed.multiplies) {
    if (multiply.threads == threads) most = std::max(most, multiply.tera_per_second);
  }
  return most;
}

std::vector<std::string> moved_speeds(std::span<const MachineSpeed> seen) {
  const MachineSpeed best = best_speed(seen);
  std::vector<std::string> sentences;
  // value_of(speed): what one run of the probe gave
  const auto compare = [&](double most, const std::string& what, const char* unit, auto value_of) {
    double least = most;
    for (const MachineSpeed& speed : seen) least = std::min(least, value_of(speed));
    if (most > kSpeedMoveMax * least) sentences.push_back(sentence(what, least, most, unit));
  };
  for (std::size_t i = 0; i < best.reads.size(); ++i) {
    const ReadSpeed& most = best.reads[i];
    compare(most.gigabytes_per_second,
            fmt::format("reading {} by {} thread(s)",
                        format_byte_size(static_cast<double>(most.bytes)), most.threads),
            "GB/s", [i](const MachineSpeed& speed) { return speed.reads[i].gigabytes_per_second; });
  }
  for (std::size_t i = 0; i < best.multiplies.size(); ++i) {
    const MultiplySpeed& most = best.multiplies[i];
    compare(most.tera_per_second,
            fmt::format("multiplying {} by {} thread(s)", most.kind, most.threads), "TMAC/s",
            [i](const MachineSpeed& speed) { return speed.multiplies[i].tera_per_second; });
  }
  return sentences;
}

SpeedProbe::SpeedProbe(std::uint32_t threads, const Clock& clock)
    : clock_(clock), thread_counts_({1}), sizes_(kCacheSizes.begin(), kCacheSizes.end()) {
  if (threads > 1) thread_counts_.push_back(threads);
  sizes_.push_back(beyond_caches());
  buffer_.resize(sizes_.back() / sizeof(std::uint64_t));
  // Pages that nobody wrote are all one page of zeros.
  for (std::size_t i = 0; i < buffer_.size(); ++i) buffer_[i] = i;
}

MachineSpeed SpeedProbe::measure() {
  MachineSpeed speed;
  const std::vector<MultiplyProbe> probes = multiply_probes();
  for (const std::uint32_t threads : thread_counts_) {
    ThreadPool pool(threads);
    for (const std::uint64_t bytes : sizes_) {
      double most = 0;
      for (int i = 0; i < kSpeedTries; ++i) most = std::max(most, read_once(bytes, pool));
      speed.reads.push_back({bytes, threads, most});
    }
    for (const MultiplyProbe& probe : probes) {
      double most = 0;
      for (int i = 0; i < kSpeedTries; ++i) most = std::max(most, multiply_once(probe.run, pool));
      speed.multiplies.push_back({probe.kind, threads, most});
    }
  }
  return speed;
}

double SpeedProbe::read_once(std::uint64_t bytes, ThreadPool& pool) {
  const std::uint64_t times = std::max<std::uint64_t>(kReadBytes / bytes, 1);
  const std::size_t words = bytes / sizeof(std::uint64_t);
  const std::int64_t begin_ns = clock_.now_ns();
  pool.run(pool.threads(), [&](WorkRange range) {
    for (std::size_t part = range.begin; part < range.end; ++part) {
      const WorkRange share = split_work(words, part, pool.threads());
      for (std::uint64_t i = 0; i < times; ++i) {
        result_sink += read_words(buffer_.data() + share.begin, share.end - share.begin);
      }
    }
  });
  return static_cast<double>(times * bytes) * 1e-9 / seconds_between(begin_ns, clock_.now_ns());
}

double SpeedProbe::multiply_once(std::uint64_t (*run)(std::uint64_t), ThreadPool& pool) {
  std::atomic<std::uint64_t> done{0};
  const std::int64_t begin_ns = clock_.now_ns();
  pool.run(pool.threads(), [&](WorkRange range) {
    for (std::size_t i = range.begin; i < range.end; ++i) done += run(kMultiplyRounds);
  });
  return static_cast<double>(done) * 1e-12 / seconds_between(begin_ns, clock_.now_ns());
}

}  // namespace pagoda::bench
