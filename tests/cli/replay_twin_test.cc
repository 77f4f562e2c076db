// The replayed caches beside plain ones that are written down as their definitions read.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <functional>
#include <list>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>

#include "base/random.h"
#include "cli/replay_belady.h"
#include "cli/replay_command.h"
#include "cli/replay_run.h"

namespace pagoda::cli {
namespace {

using Ids = std::vector<std::uint32_t>;
using Requests = std::vector<Ids>;

Trace to_trace(const Requests& requests) {
  Trace trace;
  for (const Ids& ids : requests) {
    trace.requests.push_back({trace.ids.size(), ids.size(), ids.size()});
    for (const std::uint32_t id : ids) trace.ids.emplace_back(id);
    trace.ids.emplace_back(UINT32_MAX);
  }
  return trace;
}

// The blocks of a request, each by its whole beginning.
std::vector<Ids> blocks_of(const Ids& ids) {
  std::vector<Ids> blocks;
  for (std::size_t n = 1; n <= ids.size(); ++n) blocks.emplace_back(ids.begin(), ids.begin() + n);
  return blocks;
}

// One list, most recent first; a request touches its blocks from the tail to the head.
std::uint64_t lru_hits(const Requests& requests, std::size_t capacity) {
  std::list<Ids> recent;
  std::uint64_t hits = 0;
  for (const Ids& ids : requests) {
    const std::vector<Ids> blocks = blocks_of(ids);
    for (const Ids& block : blocks) {
      if (std::find(recent.begin(), recent.end(), block) == recent.end()) break;
      ++hits;
    }
    for (auto block = blocks.rbegin(); block != blocks.rend(); ++block) {
      recent.remove(*block);
      recent.push_front(*block);
      if (recent.size() > capacity) recent.pop_back();
    }
  }
  return hits;
}

// Of the blocks that nothing cached goes on from and the request does not have, the one that came
// first leaves.
std::uint64_t fifo_hits(const Requests& requests, std::size_t capacity) {
  std::list<Ids> arrived;
  std::uint64_t hits = 0;
  for (const Ids& ids : requests) {
    std::vector<Ids> blocks = blocks_of(ids);
    const auto cached = [&](const Ids& block) {
      return std::find(arrived.begin(), arrived.end(), block) != arrived.end();
    };
    for (const Ids& block : blocks) hits += cached(block) ? 1 : 0;
    blocks.resize(std::min(blocks.size(), capacity));
    for (const Ids& block : blocks) {
      if (cached(block)) continue;
      if (arrived.size() == capacity) {
        arrived.erase(std::find_if(arrived.begin(), arrived.end(), [&](const Ids& candidate) {
          const bool mine = std::find(blocks.begin(), blocks.end(), candidate) != blocks.end();
          const bool leaf = std::none_of(arrived.begin(), arrived.end(), [&](const Ids& other) {
            return other.size() == candidate.size() + 1 &&
                   std::equal(candidate.begin(), candidate.end(), other.begin());
          });
          return !mine && leaf;
        }));
      }
      arrived.push_back(block);
    }
  }
  return hits;
}

// A cache of whole beginnings whose order is spelt out below. A block is evicted that nothing
// cached goes on from and that the request does not have; room for all that is new is made at once.
class PlainCache {
 public:
  explicit PlainCache(std::size_t capacity) : capacity_(capacity) {}
  virtual ~PlainCache() = default;

  std::uint64_t hits(const Requests& requests) {
    std::uint64_t hits = 0;
    for (const Ids& ids : requests) hits += serve(blocks_of(ids));
    return hits;
  }

 protected:
  using Evictable = std::function<bool(const Ids&)>;

  virtual void entered(const Ids& block) = 0;
  virtual void used(const Ids& block) = 0;
  virtual Ids victim(const Evictable& evictable) = 0;

  // Of `list`, the evictable one that comes first.
  static std::optional<Ids> first_of(const std::list<Ids>& list, const Evictable& evictable) {
    const auto found = std::find_if(list.begin(), list.end(), evictable);
    return found == list.end() ? std::nullopt : std::optional(*found);
  }
  std::list<Ids> by_last_use(const std::set<Ids>& blocks) const {
    std::list<Ids> list(blocks.begin(), blocks.end());
    list.sort([this](const Ids& a, const Ids& b) { return last_use_.at(a) < last_use_.at(b); });
    return list;
  }

  std::size_t capacity_;
  std::uint64_t now_ = 0;
  std::map<Ids, std::uint64_t> last_use_;  // of what is cached

 private:
  std::uint64_t serve(std::vector<Ids> blocks) {
    std::uint64_t hit = 0;
    while (hit < blocks.size() && last_use_.contains(blocks[hit])) ++hit;
    for (std::uint64_t i = hit; i-- > 0;) {
      last_use_[blocks[i]] = ++now_;
      used(blocks[i]);
    }
    blocks.resize(std::min(blocks.size(), capacity_));
    while (last_use_.size() + blocks.size() - hit > capacity_) {
      last_use_.erase(victim([&](const Ids& candidate) {
        const bool mine = std::find(blocks.begin(), blocks.end(), candidate) != blocks.end();
        return !mine && std::none_of(last_use_.begin(), last_use_.end(), [&](const auto& other) {
          return other.first.size() == candidate.size() + 1 &&
                 std::equal(candidate.begin(), candidate.end(), other.first.begin());
        });
      }));
    }
    for (std::uint64_t i = hit; i < blocks.size(); ++i) {
      last_use_[blocks[i]] = ++now_;
      entered(blocks[i]);
    }
    for (std::uint64_t i = blocks.size(); i-- > 0;) last_use_[blocks[i]] = ++now_;
    return hit;
  }
};

class PlainLfu : public PlainCache {
  using PlainCache::PlainCache;
  void entered(const Ids& block) override {
    uses_[block] = 0;
    used(block);
  }
  void used(const Ids& block) override { rank_[block] = age_ + ++uses_[block]; }
  Ids victim(const Evictable& evictable) override {
    std::optional<Ids> worst;
    for (const auto& [block, last] : last_use_) {
      if (!evictable(block)) continue;
      const auto key = [&](const Ids& b) { return std::pair(rank_[b], last_use_[b]); };
      if (!worst || key(block) < key(*worst)) worst = block;
    }
    age_ = std::max(age_, rank_[*worst]);
    return *worst;
  }

  std::map<Ids, std::uint64_t> uses_;
  std::map<Ids, std::uint64_t> rank_;
  std::uint64_t age_ = 0;
};

class PlainSlru : public PlainCache {
  using PlainCache::PlainCache;
  void entered(const Ids&) override {}
  void used(const Ids& block) override {
    protected_.remove(block);
    protected_.push_back(block);
    if (protected_.size() <= capacity_ * 4 / 5) return;
    demoted_[protected_.front()] = now_;
    protected_.pop_front();
  }
  Ids victim(const Evictable& evictable) override {
    std::list<Ids> probation;
    for (const auto& [block, last] : last_use_) {
      const auto kept = std::find(protected_.begin(), protected_.end(), block);
      if (kept == protected_.end()) probation.push_back(block);
    }
    const auto key = [this](const Ids& b) { return std::max(last_use_[b], demoted_[b]); };
    const auto earlier = [&](const Ids& a, const Ids& b) { return key(a) < key(b); };
    probation.sort(earlier);
    std::list<Ids> kept = protected_;
    kept.sort(earlier);
    std::optional<Ids> found = first_of(probation, evictable);
    if (!found) found = first_of(kept, evictable);
    protected_.remove(*found);
    demoted_.erase(*found);
    return *found;
  }

  std::list<Ids> protected_;  // used longest ago first
  std::map<Ids, std::uint64_t> demoted_;
};

class PlainS3Fifo : public PlainCache {
  using PlainCache::PlainCache;
  void entered(const Ids& block) override {
    uses_[block] = 0;
    const auto ghost = std::find(ghosts_.begin(), ghosts_.end(), block);
    (ghost == ghosts_.end() ? small_ : main_).push_back(block);
    ghosts_.remove(block);
  }
  void used(const Ids& block) override { uses_[block] = std::min(uses_[block] + 1, 3); }
  Ids victim(const Evictable& evictable) override {
    for (;;) {
      const std::size_t tenth = std::max<std::size_t>(capacity_ / 10, 1);
      const bool main_first = main_.size() + tenth > capacity_;
      std::optional<Ids> found = first_of(main_first ? main_ : small_, evictable);
      if (!found) found = first_of(main_first ? small_ : main_, evictable);
      const bool in_main = std::find(main_.begin(), main_.end(), *found) != main_.end();
      (in_main ? main_ : small_).remove(*found);
      int& uses = uses_[*found];
      if (uses >= (in_main ? 1 : 2)) {
        uses = in_main ? uses - 1 : 0;
        main_.push_back(*found);
        continue;
      }
      if (!in_main) ghosts_.push_back(*found);
      if (ghosts_.size() > capacity_ - capacity_ / 10) ghosts_.pop_front();
      return *found;
    }
  }

  std::list<Ids> small_;
  std::list<Ids> main_;
  std::list<Ids> ghosts_;
  std::map<Ids, int> uses_;
};

class PlainArc : public PlainCache {
  using PlainCache::PlainCache;
  void entered(const Ids& block) override {
    const std::size_t b1 = ghosts1_.size();
    const std::size_t b2 = ghosts2_.size();
    if (std::find(ghosts1_.begin(), ghosts1_.end(), block) != ghosts1_.end()) {
      target_ = std::min(capacity_, target_ + std::max<std::size_t>(1, b2 / b1));
      ghosts1_.remove(block);
      twice_.insert(block);
    } else if (std::find(ghosts2_.begin(), ghosts2_.end(), block) != ghosts2_.end()) {
      target_ -= std::min(target_, std::max<std::size_t>(1, b1 / b2));
      ghosts2_.remove(block);
      twice_.insert(block);
    } else {
      once_.insert(block);
      trim();
    }
  }
  void used(const Ids& block) override {
    once_.erase(block);
    twice_.insert(block);
  }
  Ids victim(const Evictable& evictable) override {
    const bool once_first = capacity_ - twice_.size() > target_;
    std::optional<Ids> found = first_of(by_last_use(once_first ? once_ : twice_), evictable);
    if (!found) found = first_of(by_last_use(once_first ? twice_ : once_), evictable);
    if (once_.erase(*found) > 0) {
      ghosts1_.push_back(*found);
    } else {
      twice_.erase(*found);
      ghosts2_.push_back(*found);
    }
    trim();
    return *found;
  }
  void trim() {
    while (!ghosts1_.empty() && once_.size() + ghosts1_.size() > capacity_) ghosts1_.pop_front();
    while (!ghosts2_.empty() && ghosts1_.size() + ghosts2_.size() > capacity_) {
      ghosts2_.pop_front();
    }
  }

  std::set<Ids> once_;
  std::set<Ids> twice_;
  std::list<Ids> ghosts1_;
  std::list<Ids> ghosts2_;
  std::size_t target_ = 0;
};

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

std::uint64_t run_hits(const Trace& trace, const kv::EvictionPolicy& policy,
                       std::uint64_t capacity) {
  const Foresight foresight(trace);
  return run_cache(trace, {&policy, capacity, 1}, foresight.unique_blocks(), {}).blocks_hit;
}

TEST(ReplayTwinTest, TheCacheHitsWhatThePlainListsHit) {
  std::uint64_t hits_in_all = 0;
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    const Requests requests = RandomRequests(seed).make(40, 1 + seed % 7, 1 + seed % 4);
    const Trace trace = to_trace(requests);
    for (const std::size_t capacity : {1, 2, 3, 5, 8, 13, 40}) {
      const std::uint64_t lru = lru_hits(requests, capacity);
      ASSERT_EQ(run_hits(trace, kv::lru_policy(), capacity), lru) << seed << " " << capacity;
      ASSERT_EQ(run_hits(trace, kv::fifo_policy(), capacity), fifo_hits(requests, capacity))
          << seed << " " << capacity;
      hits_in_all += lru;
    }
  }
  EXPECT_GT(hits_in_all, 10000U) << "the traces are worth replaying";
}

template <class Plain>
void expect_twin(const kv::EvictionPolicy& policy) {
  std::uint64_t hits_in_all = 0;
  std::uint64_t differs_from_lru = 0;
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    const Requests requests = RandomRequests(seed).make(60, 1 + seed % 7, 1 + seed % 4);
    const Trace trace = to_trace(requests);
    for (const std::size_t capacity : {1, 2, 3, 5, 8, 13, 25, 40}) {
      const std::uint64_t hits = Plain(capacity).hits(requests);
      ASSERT_EQ(run_hits(trace, policy, capacity), hits)
          << policy.name << " " << seed << " " << capacity;
      hits_in_all += hits;
      differs_from_lru += hits != lru_hits(requests, capacity) ? 1 : 0;
    }
  }
  EXPECT_GT(hits_in_all, 10000U);
  EXPECT_GT(differs_from_lru, 50U) << policy.name << " is a policy of its own";
}

TEST(ReplayTwinTest, LfuHitsWhatItsPlainTwinHits) { expect_twin<PlainLfu>(kv::lfu_aging_policy()); }
TEST(ReplayTwinTest, SlruHitsWhatItsPlainTwinHits) { expect_twin<PlainSlru>(kv::slru_policy()); }
TEST(ReplayTwinTest, S3FifoHitsWhatItsPlainTwinHits) {
  expect_twin<PlainS3Fifo>(kv::s3fifo_policy());
}
TEST(ReplayTwinTest, ArcHitsWhatItsPlainTwinHits) { expect_twin<PlainArc>(kv::arc_policy()); }

TEST(ReplayTwinTest, NoChoiceOfBlocksHitsMoreThanBelady) {
  std::uint64_t hits_in_all = 0;
  for (std::uint64_t seed = 0; seed < 120; ++seed) {
    const Requests requests = RandomRequests(seed).make(10, 3, 2);
    const Trace trace = to_trace(requests);
    const Foresight foresight(trace);
    for (const std::size_t capacity : {1, 2, 3, 4, 5}) {
      const std::uint64_t most = most_hits(requests, capacity);
      ASSERT_EQ(foresight.belady(capacity, 1).blocks_hit, most) << seed << " " << capacity;
      hits_in_all += most;
    }
  }
  EXPECT_GT(hits_in_all, 1000U);
}

TEST(ReplayTwinTest, BeladyLiesBetweenThePoliciesAndTheInfiniteCache) {
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    const Requests requests = RandomRequests(seed).make(200, 1 + seed % 12, 2 + seed % 5);
    const Trace trace = to_trace(requests);
    const Foresight foresight(trace);
    std::set<Ids> seen;
    std::uint64_t repeats = 0;
    for (const Ids& ids : requests) {
      for (const Ids& block : blocks_of(ids)) repeats += seen.insert(block).second ? 0 : 1;
    }
    ASSERT_EQ(foresight.infinite(1).blocks_hit, repeats);
    ASSERT_EQ(foresight.unique_blocks(), seen.size());
    ASSERT_EQ(foresight.belady(seen.size(), 1).blocks_hit, repeats);
    ASSERT_EQ(run_hits(trace, kv::lru_policy(), seen.size()), repeats);
    for (const std::uint64_t capacity : {1, 4, 16, 64}) {
      const std::uint64_t belady = foresight.belady(capacity, 1).blocks_hit;
      ASSERT_LE(belady, repeats);
      for (const kv::EvictionPolicy* const policy : kv::eviction_policies()) {
        ASSERT_LE(run_hits(trace, *policy, capacity), belady) << policy->name;
      }
    }
  }
}

// A thousand requests of Mooncake's conversation trace; figures by make_trace_figures.py.
TEST(ReplayTwinTest, AnExcerptOfARealTraceHasTheFiguresOfThePythonScript) {
  const std::string stem = std::string(PAGODA_TEST_DATA) + "/traces/conversation_1000";
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
}  // namespace pagoda::cli
