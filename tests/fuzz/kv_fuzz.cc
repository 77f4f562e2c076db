// Any bytes are decisions of the cache's simulation (tests/kv/cache_sim.h): whatever requests do,
// every row stays what its tokens make it and every invariant holds.
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <span>
#include <vector>

#include "base/assert.h"
#include "kv/cache_sim.h"

namespace pagoda::kv {
namespace {

constexpr std::size_t kSettings = 4;
constexpr std::size_t kBytesMax = 4096;  // a run is quadratic in its length

const std::array<std::vector<memory::AttentionSpec>, 5> kGroups = {
    {{{0}}, {{0}, {6}}, {{0}, {0}, {3}}, {{5}}, {{1}, {0}}}};

void run(std::span<const std::uint8_t> bytes) {
  if (bytes.size() < kSettings) return;
  SimOptions options;
  options.block_tokens = 1 + bytes[0] % 5;
  options.policy = bytes[0] >= 128 ? &fifo_policy() : &lru_policy();
  options.groups = kGroups[bytes[1] % kGroups.size()];
  options.tenants = bytes[1] >= 128;
  options.blocks = 4 + bytes[2] % 64;
  options.copies_out = bytes[3] % 2 == 1;
  options.share = bytes[3] / 4 % 8 != 7;
  options.hash_blocks = bytes[3] >= 128;
  options.event_ring = bytes[3] / 64 % 2 * 64;
  options.script = bytes.subspan(kSettings);
  const SimReport report = simulate(options);
  if (report.failure) std::fputs(report.failure->c_str(), stderr);
  ASSERT(!report.failure, "the simulation agrees with its cache");
}

}  // namespace
}  // namespace pagoda::kv

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size <= pagoda::kv::kBytesMax) pagoda::kv::run(std::span(data, size));
  return 0;
}
