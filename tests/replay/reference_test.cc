// The replayed caches beside plain ones that are written down as their definitions read.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "base/random.h"
#include "replay/belady.h"
#include "replay/reference_caches.h"
#include "replay/replay_command.h"
#include "replay/run.h"
#include "test_data.h"

namespace pagoda::replay {
namespace {

Trace to_trace(const Requests& requests) {
  Trace trace;
  for (const Ids& ids : requests) {
    trace.requests.push_back({trace.ids.size(), ids.size(), ids.size()});
    for (const std::uint32_t id : ids) trace.ids.emplace_back(id);
    trace.ids.emplace_back(UINT32_MAX);
  }
  return trace;
}

// The most hits of any cache: every choice of what stays after every request is tried. Sets of
// blocks are bit masks.
std::uint64_t most_hits(const Requests& requests, std::size_t capacity) {
  std::map<Ids, unsigned> bits;
  std::map<unsigned, std::uint64_t> best = {{0u, 0u}};  // hits so far by what is cached
  for (const Ids& ids : requests) {
    std::vector<unsigned> blocks;
    unsigned request = 0;
    for (const Ids& block : blocks_of(ids)) {
      blocks.push_back(1u << bits.try_emplace(block, bits.size()).first->second);
      request |= blocks.back();
    }
    std::map<unsigned, std::uint64_t> next;
    for (const auto& [cached, hits_before] : best) {
      std::uint64_t hits = hits_before;
      for (const unsigned block : blocks) {
        if ((cached & block) == 0) break;
        ++hits;
      }
      const unsigned all = cached | request;
      for (unsigned kept = all;; kept = (kept - 1) & all) {
        if (static_cast<std::size_t>(__builtin_popcount(kept)) <= capacity) {
          std::uint64_t& known = next[kept];
          known = std::max(known, hits);
        }
        if (kept == 0) break;
      }
    }
    best = std::move(next);
  }
  std::uint64_t most = 0;
  for (const auto& [cached, hits] : best) most = std::max(most, hits);
  return most;
}

class RandomRequests {
 public:
  explicit RandomRequests(std::uint64_t seed) : seed_(seed) {}

  // Up to `letters` goes on from every block.
  Requests make(std::uint64_t count, std::uint64_t blocks_max, std::uint64_t letters) {
    Requests requests(count);
    for (Ids& ids : requests) {
      ids.resize(next(blocks_max + 1));
      for (std::uint32_t& id : ids) id = static_cast<std::uint32_t>(next(letters));
    }
    return requests;
  }

 private:
  std::uint64_t next(std::uint64_t limit) { return random_bits(seed_, 0, drawn_++) % limit; }

  std::uint64_t seed_;
  std::uint64_t drawn_ = 0;
};

std::uint64_t run_hits(const Trace& trace, const kv::EvictionPolicy& policy, std::uint64_t capacity,
                       std::uint64_t block_tokens = 1) {
  const BlockNumbers numbers(trace);
  const TraceOracle oracle(trace, numbers);
  return run_cache(trace, {&policy, capacity, block_tokens}, numbers.unique(), {}).blocks_hit;
}

TEST(ReplayReferenceTest, TheCacheHitsWhatThePlainListsHit) {
  std::uint64_t hits_in_all = 0;
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    const Requests requests = RandomRequests(seed).make(40, 1 + seed % 7, 1 + seed % 4);
    const Trace trace = to_trace(requests);
    for (const std::size_t capacity : {1, 2, 3, 5, 8, 13, 40}) {
      const std::uint64_t lru = lru_hits(requests, capacity);
      ASSERT_EQ(run_hits(trace, kv::lru_policy(), capacity), lru) << seed << " " << capacity;
      ASSERT_EQ(run_hits(trace, kv::fifo_policy(), capacity), fifo_hits(requests, capacity))
          << seed << " " << capacity;
      ASSERT_EQ(run_hits(trace, kv::time_to_live_policy(), capacity), lru)
          << "without priorities, " << seed << " " << capacity;
      hits_in_all += lru;
    }
  }
  EXPECT_GT(hits_in_all, 10000U) << "the traces are worth replaying";
}

template <class Plain, class... More>
void expect_reference(const kv::EvictionPolicy& policy, More... more) {
  std::uint64_t hits_in_all = 0;
  std::uint64_t differs_from_lru = 0;
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    const Requests requests = RandomRequests(seed).make(60, 1 + seed % 7, 1 + seed % 4);
    const Trace trace = to_trace(requests);
    for (const std::size_t capacity : {1, 2, 3, 5, 8, 13, 25, 40}) {
      const std::uint64_t hits = Plain(capacity, more...).hits(requests);
      ASSERT_EQ(run_hits(trace, policy, capacity, more...), hits)
          << policy.name << " " << seed << " " << capacity;
      hits_in_all += hits;
      differs_from_lru += hits != lru_hits(requests, capacity) ? 1 : 0;
    }
  }
  EXPECT_GT(hits_in_all, 10000U);
  EXPECT_GT(differs_from_lru, 50U) << policy.name << " is a policy of its own";
}

TEST(ReplayReferenceTest, LfuHitsWhatItsReferenceHits) {
  expect_reference<PlainLfu>(kv::lfu_aging_policy());
}
TEST(ReplayReferenceTest, SlruHitsWhatItsReferenceHits) {
  expect_reference<PlainSlru>(kv::slru_policy());
}
TEST(ReplayReferenceTest, S3FifoHitsWhatItsReferenceHits) {
  expect_reference<PlainS3Fifo>(kv::s3fifo_policy());
}
TEST(ReplayReferenceTest, CostHitsWhatItsReferenceHits) {
  expect_reference<PlainCost>(kv::cost_policy(), std::uint64_t{4096});
}
TEST(ReplayReferenceTest, ContinuationHitsWhatItsReferenceHits) {
  expect_reference<PlainContinuation>(kv::continuation_policy());
}
TEST(ReplayReferenceTest, ArcHitsWhatItsReferenceHits) {
  expect_reference<PlainArc>(kv::arc_policy());
}

TEST(ReplayReferenceTest, NoChoiceOfBlocksHitsMoreThanBelady) {
  std::uint64_t hits_in_all = 0;
  for (std::uint64_t seed = 0; seed < 120; ++seed) {
    const Requests requests = RandomRequests(seed).make(10, 3, 2);
    const Trace trace = to_trace(requests);
    const BlockNumbers numbers(trace);
    const TraceOracle oracle(trace, numbers);
    for (const std::size_t capacity : {1, 2, 3, 4, 5}) {
      const std::uint64_t most = most_hits(requests, capacity);
      ASSERT_EQ(oracle.belady(capacity, 1).blocks_hit, most) << seed << " " << capacity;
      hits_in_all += most;
    }
  }
  EXPECT_GT(hits_in_all, 1000U);
}

TEST(ReplayReferenceTest, BeladyLiesBetweenThePoliciesAndTheInfiniteCache) {
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    const Requests requests = RandomRequests(seed).make(200, 1 + seed % 12, 2 + seed % 5);
    const Trace trace = to_trace(requests);
    const BlockNumbers numbers(trace);
    const TraceOracle oracle(trace, numbers);
    std::set<Ids> seen;
    std::uint64_t repeats = 0;
    for (const Ids& ids : requests) {
      for (const Ids& block : blocks_of(ids)) repeats += seen.insert(block).second ? 0 : 1;
    }
    ASSERT_EQ(oracle.infinite(1).blocks_hit, repeats);
    ASSERT_EQ(numbers.unique(), seen.size());
    ASSERT_EQ(oracle.belady(seen.size(), 1).blocks_hit, repeats);
    ASSERT_EQ(run_hits(trace, kv::lru_policy(), seen.size()), repeats);
    for (const std::uint64_t capacity : {1, 4, 16, 64}) {
      const std::uint64_t belady = oracle.belady(capacity, 1).blocks_hit;
      ASSERT_LE(belady, repeats);
      for (const kv::EvictionPolicy* const policy : kv::eviction_policies()) {
        ASSERT_LE(run_hits(trace, *policy, capacity), belady) << policy->name;
      }
    }
  }
}

// Sessions whose turns send all that came before; those that end stay credited for a while.
Requests agents(std::uint64_t seed) {
  std::uint64_t drawn = 0;
  const auto below = [&](std::uint64_t bound) { return random_bits(seed, 1, drawn++) % bound; };
  std::uint32_t next_id = 1;
  std::vector<Ids> sessions(24, Ids{0});
  Requests requests;
  for (int i = 0; i < 6000; ++i) {
    Ids& context = sessions[below(sessions.size())];
    if (below(25) == 0) context = {0};  // it ended, and another begins
    for (std::uint64_t more = 1 + below(3); more > 0; --more) context.push_back(next_id++);
    requests.push_back(context);
    requests.back().push_back(next_id++);
  }
  return requests;
}

TEST(ReplayReferenceTest, ContinuationIsNowhereMoreThanAPointBelowLru) {
  for (const std::uint64_t seed : {1, 2, 3}) {
    const Trace trace = to_trace(agents(seed));
    const BlockNumbers numbers(trace);
    const TraceOracle oracle(trace, numbers);
    for (const std::uint64_t percent : {1, 2, 5, 10, 25, 50}) {
      const std::uint64_t capacity = numbers.unique() * percent / 100;
      const auto lru = static_cast<double>(run_hits(trace, kv::lru_policy(), capacity));
      const auto own = static_cast<double>(run_hits(trace, kv::continuation_policy(), capacity));
      EXPECT_GT(own, lru - 0.01 * static_cast<double>(trace.touches())) << seed << " " << percent;
    }
  }
}

// A thousand requests of Mooncake's conversation trace; figures by make_trace_figures.py.
TEST(ReplayReferenceTest, AnExcerptOfARealTraceHasTheFiguresOfThePythonScript) {
  const std::string stem = test_data() + "/traces/conversation_1000";
  const nlohmann::json expected = nlohmann::json::parse(std::ifstream(stem + ".json"));
  const Replayed replayed =
      run_replay({stem + ".jsonl.gz", "--json", "--policy", "lru,fifo,belady"});
  ASSERT_EQ(replayed.status, 0) << replayed.err;
  const nlohmann::json json = replayed.json();
  EXPECT_EQ(json["results"], expected["results"]);
  EXPECT_EQ(json["infinite"], expected["infinite"]);
  EXPECT_EQ(json["requests"], expected["requests"]);
  EXPECT_EQ(json["unique_blocks"], expected["unique_blocks"]);
}

}  // namespace
}  // namespace pagoda::replay
