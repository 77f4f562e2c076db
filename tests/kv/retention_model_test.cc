// Tenants, quotas, budgets and expiry against a model that is written down as the rules read.
//
// Requests come one after another into a small cache whose blocks are one token. After each of them
// every prompt is found exactly as far as in the model, and all accounts agree.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "base/random.h"
#include "kv/cache_fixture.h"

namespace pagoda::kv {
namespace {

constexpr std::uint64_t kPublicTokens = 2;  // of tenants' prompts
constexpr std::uint32_t kEnd = 99;          // never computed

struct Rules {
  std::uint64_t blocks = 0;
  std::uint64_t quota_private = 0;
  std::uint64_t quota_public = 0;
  std::uint64_t budget = 0;
  bool one_owner = false;  // of tenants 1 and 2, which then have one account

  int account(int tenant) const { return one_owner && tenant == 2 ? 1 : tenant; }
};

// A block is its tokens and the region of each of them, from the first.
using Path = std::vector<std::pair<std::uint32_t, int>>;

class Model {
 public:
  explicit Model(const Rules& rules) : rules_(rules) {}

  // The blocks that a tenant finds of the tokens: of the region each belongs to, else of the other
  // that it may see.
  std::vector<Path> find(int tenant, const std::vector<std::uint32_t>& tokens) const {
    std::vector<Path> found;
    Path path;
    for (const std::uint32_t token : tokens) {
      const int home = region(tenant, path);
      const bool below_private = !path.empty() && path.back().second != 0;
      Path next = path;
      next.emplace_back(token, home);
      if (!cached_.contains(next) && !below_private) next.back().second = home == 0 ? tenant : 0;
      if (!cached_.contains(next)) break;
      path = next;
      found.push_back(path);
    }
    return found;
  }

  void serve(int tenant, const std::vector<std::uint32_t>& tokens) {
    path_ = find(tenant, tokens);
    const std::size_t found = path_.size();
    while (cached_.size() + tokens.size() - found > rules_.blocks) evict();
    for (std::size_t i = found; i < tokens.size(); ++i) {
      Path next = path_.empty() ? Path() : path_.back();
      next.emplace_back(tokens[i], region(tenant, next));
      path_.push_back(next);
      cached_[next] = {};
      note_count(next.back().second);
    }
  }

  // Of the request that runs.
  bool retain(int tenant, std::uint64_t tokens, std::int64_t until, std::uint32_t priority) {
    std::vector<Path> taken;
    std::uint64_t in_all = 0;
    std::uint64_t of_tenant = 0;
    for (const auto& [path, block] : cached_) {
      in_all += block.until > 0 ? 1 : 0;
      of_tenant += block.until > 0 && block.account == rules_.account(tenant) ? 1 : 0;
    }
    const std::size_t kept = std::min<std::size_t>(tokens, path_.size());
    for (std::size_t i = 0; i < kept; ++i) {
      const Block& block = cached_.at(path_[i]);
      if (block.until > 0 && (until < block.until || priority < block.priority)) continue;
      taken.push_back(path_[i]);
      in_all += block.until > 0 ? 0 : 1;
      of_tenant += block.until > 0 && block.account == rules_.account(tenant) ? 0 : 1;
    }
    if (kept == 0 || of_tenant > rules_.budget || in_all > rules_.blocks / 2) return false;
    for (const Path& path : taken) {
      Block& block = cached_[path];
      block.until = until;
      block.priority = priority;
      block.account = rules_.account(tenant);
    }
    return true;
  }

  void close() {
    for (std::size_t i = path_.size(); i-- > 0;) cached_[path_[i]].last_use = ++now_;
    path_.clear();
  }

  void advance(std::int64_t now) {
    for (auto& [path, block] : cached_) {
      if (block.until <= now) block.until = 0;
    }
  }

  std::uint64_t blocks() const { return cached_.size(); }
  std::uint64_t blocks(int region) const {
    return static_cast<std::uint64_t>(
        std::count_if(cached_.begin(), cached_.end(),
                      [&](const auto& entry) { return entry.first.back().second == region; }));
  }
  std::uint64_t blocks_retained() const {
    return static_cast<std::uint64_t>(std::count_if(
        cached_.begin(), cached_.end(), [](const auto& entry) { return entry.second.until > 0; }));
  }
  std::uint64_t evicted_for_quota() const { return evicted_for_quota_; }
  std::uint64_t evicted_retained() const { return evicted_retained_; }

 private:
  struct Block {
    std::uint64_t last_use = 0;
    std::int64_t until = 0;  // 0: not retained
    std::uint32_t priority = 0;
    int account = 0;
  };

  static int region(int tenant, const Path& before) {
    const bool below_private = !before.empty() && before.back().second != 0;
    return below_private || before.size() >= kPublicTokens ? tenant : 0;
  }

  void note_count(int region) {
    const int account = rules_.account(region);
    const std::uint64_t quota = account == 0 ? rules_.quota_public : rules_.quota_private;
    std::uint64_t charged = 0;
    for (int other = 0; other < 4; ++other) {
      if (rules_.account(other) == account) charged += blocks(other);
    }
    const bool is_over = quota > 0 && charged > quota;
    const auto listed = std::find(over_.begin(), over_.end(), account);
    if (is_over && listed == over_.end()) over_.push_back(account);
    if (!is_over && listed != over_.end()) over_.erase(listed);
  }

  bool may_go(const Path& path) const {
    if (std::find(path_.begin(), path_.end(), path) != path_.end()) return false;
    return std::none_of(cached_.begin(), cached_.end(), [&](const auto& other) {
      return other.first.size() == path.size() + 1 &&
             std::equal(path.begin(), path.end(), other.first.begin());
    });
  }

  template <class Counts, class Rank>
  std::optional<Path> first(Counts&& counts, Rank&& rank) const {
    std::optional<Path> best;
    for (const auto& [path, block] : cached_) {
      if (!counts(path, block) || !may_go(path)) continue;
      if (!best || rank(block) < rank(cached_.at(*best))) best = path;
    }
    return best;
  }

  void evict() {
    const auto age = [](const Block& block) { return block.last_use; };
    std::optional<Path> victim;
    for (const int account : over_) {
      victim = first(
          [&](const Path& path, const Block& block) {
            return rules_.account(path.back().second) == account && block.until == 0;
          },
          age);
      if (victim) break;
    }
    evicted_for_quota_ += victim ? 1 : 0;
    if (!victim) {
      victim = first([](const Path&, const Block& block) { return block.until == 0; }, age);
    }
    if (!victim) {
      victim = first([](const Path&, const Block&) { return true; },
                     [](const Block& block) { return std::pair(block.priority, block.last_use); });
      ++evicted_retained_;
    }
    const int region = victim->back().second;
    cached_.erase(*victim);
    note_count(region);
  }

  Rules rules_;
  std::map<Path, Block> cached_;
  std::vector<Path> path_;  // of the request that runs
  std::vector<int> over_;   // accounts
  std::uint64_t now_ = 0;
  std::uint64_t evicted_for_quota_ = 0;
  std::uint64_t evicted_retained_ = 0;
};

class Comparison {
 public:
  explicit Comparison(std::uint64_t seed) : seed_(seed) {
    rules_ = {.blocks = 9 + below(16),
              .quota_private = below(3) == 0 ? 0 : 3 + below(8),
              .quota_public = below(2) == 0 ? 0 : 3 + below(8),
              .budget = 1 + below(12),
              .one_owner = seed % 2 == 1};
    CacheOptions options;
    options.blocks = static_cast<std::uint32_t>(rules_.blocks);
    options.block_tokens = 1;
    options.quota_blocks_private = rules_.quota_private;
    options.quota_blocks_public = rules_.quota_public;
    options.retain_blocks_max = rules_.budget;
    fixture_.emplace(options);
    model_.emplace(rules_);
    // Held, so that numbers of salts stay.
    scopes_.push_back(fixture_->everyone());
    for (const char* const salt : {"a", "b", "c"}) {
      const bool is_owned = rules_.one_owner && scopes_.size() < 3;
      scopes_.push_back(
          fixture_->cache().scope("model", salt, {}, OwnerId(is_owned ? 7 : 0)).value());
      scopes_.back().public_tokens = kPublicTokens;
    }
  }

  void go() {
    for (int i = 0; i < 120 && !::testing::Test::HasFatalFailure(); ++i) {
      SCOPED_TRACE(::testing::Message() << "seed " << seed_ << ", request " << i);
      step();
      compare();
    }
  }

  const Model& model() const { return *model_; }
  std::uint64_t granted() const { return granted_; }
  std::uint64_t refused() const { return refused_; }

 private:
  std::uint64_t below(std::uint64_t bound) { return random_bits(seed_, 5, drawn_++) % bound; }

  void step() {
    time_ += static_cast<std::int64_t>(below(4));
    fixture_->cache().advance_time(time_);
    model_->advance(time_);
    const int tenant = static_cast<int>(below(4));
    std::vector<std::uint32_t> tokens(1 + below(8));
    for (std::uint32_t& token : tokens) token = static_cast<std::uint32_t>(below(3));
    tokens_seen_.push_back(tokens);
    Tokens prompt;
    for (const std::uint32_t token : tokens) prompt.emplace_back(token);
    prompt.emplace_back(kEnd);
    Sequence sequence = fixture_->open(scopes_[static_cast<std::size_t>(tenant)], prompt);
    const auto done = static_cast<std::ptrdiff_t>(sequence.tokens_computed());
    ASSERT_TRUE(fixture_->feed(sequence, Tokens(prompt.begin() + done, prompt.end() - 1)));
    model_->serve(tenant, tokens);
    if (below(3) == 0) {
      const std::uint64_t upto = 1 + below(tokens.size());
      const std::int64_t until = time_ + 1 + static_cast<std::int64_t>(below(40));
      const auto priority = static_cast<std::uint32_t>(below(3));
      const bool expected = model_->retain(tenant, upto, until, priority);
      const auto outcome = fixture_->cache().retain(
          sequence, {.tokens = upto, .until_ns = until, .priority = priority});
      ASSERT_EQ(outcome.ok(), expected) << (outcome.ok() ? "" : outcome.error().message);
      ++(expected ? granted_ : refused_);
    }
    fixture_->cache().close(sequence);
    fixture_->cache().check();
    model_->close();
  }

  void compare() {
    const Cache& cache = fixture_->cache();
    ASSERT_EQ(cache.pool().blocks() - cache.pool().blocks_free(), model_->blocks());
    ASSERT_EQ(cache.retention().blocks(), model_->blocks_retained());
    for (int tenant = 0; tenant < 4; ++tenant) {
      const CacheScope& scope = scopes_[static_cast<std::size_t>(tenant)];
      ASSERT_EQ(cache.salts().blocks_charged(scope.salt()), model_->blocks(tenant));
      for (const std::vector<std::uint32_t>& tokens : tokens_seen_) {
        Tokens prompt;
        for (const std::uint32_t token : tokens) prompt.emplace_back(token);
        prompt.emplace_back(kEnd);
        ASSERT_EQ(cache.match(scope, prompt).tokens, model_->find(tenant, tokens).size());
      }
    }
  }

  std::uint64_t seed_;
  std::uint64_t drawn_ = 0;
  Rules rules_;
  std::optional<CacheFixture> fixture_;
  std::optional<Model> model_;
  std::vector<CacheScope> scopes_;  // [tenant]
  std::vector<std::vector<std::uint32_t>> tokens_seen_;
  std::int64_t time_ = 0;
  std::uint64_t granted_ = 0;
  std::uint64_t refused_ = 0;
};

TEST(RetentionModel, TheCacheKeepsWhatTheRulesSay) {
  std::uint64_t for_quota = 0;
  std::uint64_t retained = 0;
  std::uint64_t granted = 0;
  std::uint64_t refused = 0;
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    Comparison run(seed);
    run.go();
    if (::testing::Test::HasFatalFailure()) return;
    for_quota += run.model().evicted_for_quota();
    retained += run.model().evicted_retained();
    granted += run.granted();
    refused += run.refused();
  }
  EXPECT_GT(for_quota, 1000u);
  EXPECT_GT(retained, 20u);
  EXPECT_GT(granted, 500u);
  EXPECT_GT(refused, 200u);
}

}  // namespace
}  // namespace pagoda::kv
