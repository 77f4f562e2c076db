// Caches of whole prefixes, written down as the definitions of their policies read: slow, plain
// references for what src/kv/evict does.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <optional>
#include <set>
#include <vector>

namespace pagoda::replay {

using Ids = std::vector<std::uint32_t>;
using Requests = std::vector<Ids>;

// The blocks of a request, each by its whole prefix.
inline std::vector<Ids> blocks_of(const Ids& ids) {
  std::vector<Ids> blocks;
  for (std::size_t n = 1; n <= ids.size(); ++n) blocks.emplace_back(ids.begin(), ids.begin() + n);
  return blocks;
}

// One list, most recent first; a request touches its blocks from the tail to the head.
inline std::uint64_t lru_hits(const Requests& requests, std::size_t capacity) {
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
inline std::uint64_t fifo_hits(const Requests& requests, std::size_t capacity) {
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

// A cache of whole prefixes whose order is spelt out below. A block is evicted that nothing
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

  // The request that comes next finds so many blocks and computes so many.
  virtual void comes(std::size_t /*found*/, std::size_t /*fresh*/, std::size_t /*ways_on*/) {}
  virtual void entered(const Ids& block) = 0;
  virtual void used(const Ids& block) = 0;
  virtual Ids victim(const Evictable& evictable) = 0;
  virtual void ended(const Ids& /*last*/) {}

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
  static bool goes_on(const Ids& block, const Ids& next) {
    return next.size() == block.size() + 1 && std::equal(block.begin(), block.end(), next.begin());
  }

  std::uint64_t serve(std::vector<Ids> blocks) {
    std::uint64_t hit = 0;
    while (hit < blocks.size() && last_use_.contains(blocks[hit])) ++hit;
    const auto ways_on = std::count_if(last_use_.begin(), last_use_.end(), [&](const auto& other) {
      return hit > 0 && goes_on(blocks[hit - 1], other.first);
    });
    comes(hit, blocks.size() + 1 - hit, static_cast<std::size_t>(ways_on));
    for (std::uint64_t i = hit; i-- > 0;) {
      last_use_[blocks[i]] = ++now_;
      used(blocks[i]);
    }
    blocks.resize(std::min(blocks.size(), capacity_));
    while (last_use_.size() + blocks.size() - hit > capacity_) {
      last_use_.erase(victim([&](const Ids& candidate) {
        const bool mine = std::find(blocks.begin(), blocks.end(), candidate) != blocks.end();
        return !mine && std::none_of(last_use_.begin(), last_use_.end(), [&](const auto& other) {
          return goes_on(candidate, other.first);
        });
      }));
    }
    for (std::uint64_t i = hit; i < blocks.size(); ++i) {
      last_use_[blocks[i]] = ++now_;
      entered(blocks[i]);
    }
    if (!blocks.empty()) ended(blocks.back());
    for (std::uint64_t i = blocks.size(); i-- > 0;) last_use_[blocks[i]] = ++now_;
    return hit;
  }
};

class PlainLfu : public PlainCache {
 public:
  using PlainCache::PlainCache;

 protected:
  virtual std::uint64_t cost(const Ids& /*block*/) const { return 1; }

 private:
  void entered(const Ids& block) override {
    uses_[block] = 0;
    used(block);
  }
  void used(const Ids& block) override { rank_[block] = age_ + ++uses_[block] * cost(block); }
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

// Sixteenths of the first block's, and as much again after 24,576 tokens.
class PlainCost : public PlainLfu {
 public:
  PlainCost(std::size_t capacity, std::uint64_t block_tokens)
      : PlainLfu(capacity), block_tokens_(block_tokens) {}

 private:
  std::uint64_t cost(const Ids& block) const override {
    return 16 + 16 * (block.size() - 1) * block_tokens_ / 24576;
  }

  std::uint64_t block_tokens_;
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

class PlainContinuation : public PlainCache {
  using PlainCache::PlainCache;
  void comes(std::size_t found, std::size_t fresh, std::size_t ways_on) override {
    const bool goes_on = found > 0 && ways_on <= 2;
    credit_of_new_ = !goes_on ? 0 : 2 * fresh < found ? 1 : -1;
  }
  void entered(const Ids& block) override {
    learn(false, block);
    credit_[block] = credit_of_new_;
    const auto ghost = std::find_if(ghosts_.begin(), ghosts_.end(),
                                    [&](const auto& other) { return other.first == block; });
    reuses_[block] = ghost == ghosts_.end() ? 0 : std::min(ghost->second + 1, 3);
    if (ghost != ghosts_.end()) ghosts_.erase(ghost);
  }
  void used(const Ids& block) override {
    learn(true, block);
    reuses_[block] = std::min(reuses_[block] + 1, 3);
  }
  void learn(bool found, const Ids& block) {
    const auto at = std::find(lru_.begin(), lru_.end(), block);
    const bool lru_finds = at != lru_.end();
    if (found && !lru_finds) worth_ = std::min(worth_ + 8, turnover());
    if (!found && lru_finds) worth_ = std::max(worth_ - 8, turnover() / 16);
    if (lru_finds) lru_.erase(at);
    lru_.push_back(block);
    if (lru_.size() > capacity_) lru_.pop_front();
  }
  std::int64_t turnover() const { return 2 * static_cast<std::int64_t>(capacity_); }
  void ended(const Ids& last) override { credit_[last] = -1; }
  Ids victim(const Evictable& evictable) override {
    std::optional<Ids> first;
    const auto credited = [&](const Ids& block) {
      const std::int64_t credit = reuses_[block] > 0 ? reuses_[block] : credit_[block];
      // Of equals the one with less credit.
      return std::pair(static_cast<std::int64_t>(last_use_[block]) + credit * worth_, credit);
    };
    for (const auto& [block, last] : last_use_) {
      if (evictable(block) && (!first || credited(block) < credited(*first))) first = block;
    }
    ghosts_.emplace_back(*first, reuses_[*first]);
    if (ghosts_.size() > 2 * capacity_) ghosts_.pop_front();
    return *first;
  }

  int credit_of_new_ = 0;
  std::int64_t worth_ = static_cast<std::int64_t>(capacity_);
  std::list<Ids> lru_;  // used longest ago first
  std::map<Ids, int> credit_;
  std::map<Ids, int> reuses_;
  std::list<std::pair<Ids, int>> ghosts_;
};

}  // namespace pagoda::replay
