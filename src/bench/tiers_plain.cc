#include "bench/tiers_plain.h"

#include <fmt/format.h>

#include <charconv>
#include <cstring>
#include <filesystem>
#include <memory>
#include <vector>

#include "base/clock.h"
#include "process/program_output.h"

namespace pagoda::bench {
namespace {

// The seconds that dd says it took: "… bytes (…) copied, 1.234 s, …".
Result<double> run_dd(const std::vector<std::string>& operands, const BenchRun& run) {
  std::vector<std::string> words = {"/usr/bin/env", "LC_ALL=C", "dd"};
  words.insert(words.end(), operands.begin(), operands.end());
  ASSIGN_OR_RETURN(const process::ProgramOutput output,
                   process::run_program(words, [&run] { return run.interrupted(); }));
  if (!output.succeeded()) return Error{ErrorCode::kIo, "dd " + output.end()};
  const std::size_t at = output.err.find("copied, ");
  double seconds = 0;
  if (at == std::string::npos ||
      std::from_chars(output.err.data() + at + 8, output.err.data() + output.err.size(), seconds)
              .ec != std::errc{}) {
    return Error{ErrorCode::kCorrupt, "dd does not say how long it took: " + output.err};
  }
  return seconds;
}

enum class Keys : std::uint8_t { kOne, kMany };

// The seconds that redis-benchmark takes for so many of them.
Result<double> run_redis_benchmark(const store::RemoteUrl& url, const std::string& verb, Keys keys,
                                   const PlainPages& pages, const BenchRun& run) {
  const std::string count = std::to_string(pages.count);
  const bool cluster = url.layout == store::RemoteLayout::kCluster;
  const store::NodeAddress& node = url.addresses.front();
  // As many connections as there are likely nodes: one for each.
  const std::string clients = cluster ? "3" : "1";
  std::vector<std::string> words = {
      "/usr/bin/env", "redis-benchmark",           "-h", node.host, "-p", node.port, "-t", verb,
      "-d",           std::to_string(pages.bytes), "-n", count,     "-c", clients,   "-P", "16",
      "--csv"};
  if (cluster) words.emplace_back("--cluster");
  if (!url.password.empty()) words.insert(words.end(), {"-a", url.password});
  if (keys == Keys::kMany) words.insert(words.end(), {"-r", count});
  const auto run_once = [&] {
    return process::run_program(words, [&run] { return run.interrupted(); });
  };
  ASSIGN_OR_RETURN(process::ProgramOutput output, run_once());
  // At the end of a short run its clock may find that all clients are gone, and call that a
  // failure.
  constexpr int kTries = 3;
  for (int i = 1; i < kTries && output.err.find("All clients disconnected") != std::string::npos;
       ++i) {
    ASSIGN_OR_RETURN(output, run_once());
  }
  if (!output.succeeded()) return Error{ErrorCode::kIo, "redis-benchmark " + output.end()};
  // The last line: "SET","1234.56",…
  const std::size_t name = output.out.rfind("\"" + std::string(verb == "set" ? "SET" : "GET"));
  double per_second = 0;
  if (name == std::string::npos || name + 7 > output.out.size() ||
      std::from_chars(output.out.data() + name + 7, output.out.data() + output.out.size(),
                      per_second)
              .ec != std::errc{}) {
    return Error{ErrorCode::kCorrupt, "redis-benchmark says no rate: " + output.out};
  }
  return static_cast<double>(pages.count) / per_second;
}

}  // namespace

Result<TierSpeed> measure_memcpy(const PlainPages& pages, const BenchRun& run) {
  std::vector<std::byte> page(pages.bytes);
  // Untouched, as a store's memory is.
  const std::unique_ptr<std::byte[]> all(new std::byte[pages.count * pages.bytes]);
  TierSpeed speed;
  const std::int64_t begin_ns = run.clock().now_ns();
  for (std::uint64_t i = 0; i < pages.count; ++i) {
    std::memcpy(all.get() + i * page.size(), page.data(), page.size());
  }
  const std::int64_t written_ns = run.clock().now_ns();
  for (std::uint64_t i = 0; i < pages.count; ++i) {
    std::memcpy(page.data(), all.get() + i * page.size(), page.size());
  }
  speed.write_s = seconds_between(begin_ns, written_ns);
  speed.read_s = seconds_between(written_ns, run.clock().now_ns());
  return speed;
}

Result<TierSpeed> measure_dd(const std::string& folder, const PlainPages& pages,
                             const BenchRun& run) {
  const std::string file = folder + "/dd";
  const std::string count = fmt::format("count={}", pages.count);
  const std::string size = fmt::format("bs={}", pages.bytes);
  TierSpeed speed;
  ASSIGN_OR_RETURN(
      speed.write_s,
      run_dd({"if=/dev/zero", "of=" + file, size, count, "oflag=direct", "conv=fsync"}, run));
  ASSIGN_OR_RETURN(speed.read_s,
                   run_dd({"if=" + file, "of=/dev/null", size, count, "iflag=direct"}, run));
  std::filesystem::remove(file);
  return speed;
}

Result<TierSpeed> measure_redis(const store::RemoteUrl& url, const PlainPages& pages,
                                const BenchRun& run) {
  TierSpeed speed;
  ASSIGN_OR_RETURN(speed.write_s, run_redis_benchmark(url, "set", Keys::kMany, pages, run));
  RETURN_IF_ERROR(run_redis_benchmark(url, "set", Keys::kOne, {1, pages.bytes}, run));
  ASSIGN_OR_RETURN(speed.read_s, run_redis_benchmark(url, "get", Keys::kOne, pages, run));
  return speed;
}

}  // namespace pagoda::bench
