// Shadow caches beside the cache itself.
#include "kv/curve/shadow_cache.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <variant>
#include <vector>

#include "base/random.h"
#include "kv/block_identity.h"
#include "kv/cache.h"

namespace pagoda::kv {
namespace {

constexpr std::uint32_t kBlocks = 40;

// Sessions of a few kinds that go on, branch and come back; ids of blocks, head first. Some are
// longer than the cache.
std::vector<std::vector<std::uint32_t>> random_requests(std::uint64_t seed) {
  std::vector<std::vector<std::uint32_t>> requests;
  for (std::uint64_t r = 0; r < 1500; ++r) {
    const double unit = random_unit(seed, 0, r);
    const auto session = static_cast<std::uint32_t>(unit * unit * 60);
    const std::uint64_t length = 1 + random_bits(seed, 1, r) % (r % 97 == 0 ? 60 : 12);
    std::vector<std::uint32_t> request;
    for (std::uint32_t block = 0; block < length; ++block) {
      const bool apart = block > 3 && random_bits(seed, 2, r) % 3 == 0;
      request.push_back(block < 2 ? block : session * 1000 + block + (apart ? 500 : 0));
    }
    requests.push_back(request);
  }
  return requests;
}

// As `pagoda replay` does it: each request opens, computes and closes before the next one comes.
std::uint64_t serve(Cache& cache, const CacheScope& scope, const std::vector<std::uint32_t>& ids) {
  std::vector<TokenId> prompt(ids.begin(), ids.end());
  prompt.emplace_back(0);  // never matched
  const Match match = cache.match(scope, prompt);
  auto opened = cache.open(scope, match, prompt);
  Sequence& sequence = std::get<Opened>(opened).sequence;
  const std::uint64_t kept = std::min<std::uint64_t>(ids.size(), kBlocks);
  EXPECT_TRUE(std::holds_alternative<std::vector<Copy>>(cache.reserve(sequence, kept)));
  cache.commit(sequence,
               std::span<const TokenId>(prompt).subspan(match.tokens, kept - match.tokens));
  cache.close(sequence);
  return match.tokens;
}

std::vector<SampledBlock> blocks_of(const std::vector<std::uint32_t>& ids) {
  std::vector<SampledBlock> blocks;
  std::uint64_t above = 77;
  for (const std::uint32_t id : ids) {
    above = mix_identity(above, id);
    blocks.push_back({above, blocks.size() * 512});
  }
  return blocks;
}

class Shadow : public testing::TestWithParam<const EvictionPolicy*> {};

TEST_P(Shadow, OfAllBlocksFindsWhatTheCacheFindsRequestByRequest) {
  CacheOptions options;
  options.blocks = kBlocks;
  options.block_tokens = 1;
  options.block_tokens_weighed = 512;
  options.policy = GetParam();
  for (std::uint64_t seed = 0; seed < 4; ++seed) {
    Cache cache(options);
    const CacheScope scope = cache.scope("", "").value();
    ShadowCache shadow(*GetParam(), kBlocks);
    std::uint64_t found = 0;
    for (const std::vector<std::uint32_t>& ids : random_requests(seed)) {
      const std::vector<SampledBlock> blocks = blocks_of(ids);
      const std::uint64_t expected = serve(cache, scope, ids);
      ASSERT_EQ(shadow.open(blocks, {}, 0, false), expected);
      shadow.close(blocks, {}, 0, true);
      shadow.check();
      found += expected;
    }
    EXPECT_GT(found, 2000u);
    EXPECT_GT(cache.stats().blocks_evicted, 1000u);
  }
}

TEST_P(Shadow, AgreesWithItselfWhileRequestsOverlap) {
  ShadowCache shadow(*GetParam(), 16);
  const auto requests = random_requests(9);
  constexpr std::size_t kRunning = 5;
  std::uint64_t found = 0;
  for (std::size_t r = 0; r < requests.size(); ++r) {
    const std::uint64_t here =
        shadow.open(blocks_of(requests[r]), {}, static_cast<std::int64_t>(r), r % 3 == 0);
    ASSERT_LE(here, std::min<std::size_t>(requests[r].size(), shadow.blocks()));
    found += here;
    shadow.check();
    if (r < kRunning) continue;
    // It generated two more.
    std::vector<std::uint32_t> ended = requests[r - kRunning];
    ended.push_back(static_cast<std::uint32_t>(7000 + r));
    ended.push_back(static_cast<std::uint32_t>(8000 + r));
    shadow.close(blocks_of(ended), {}, static_cast<std::int64_t>(r), r % 2 == 0);
    shadow.check();
  }
  EXPECT_GT(found, 1000u) << "the runs reach what they are meant to reach";
}

INSTANTIATE_TEST_SUITE_P(Policies, Shadow,
                         testing::ValuesIn(eviction_policies().begin(), eviction_policies().end()),
                         [](const auto& policy) { return std::string(policy.param->name); });

}  // namespace
}  // namespace pagoda::kv
