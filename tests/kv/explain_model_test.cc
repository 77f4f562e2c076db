// Explanations against a reference that knows the truth (explain_oracle.h), by seed.
#include <gtest/gtest.h>

#include <array>

#include "base/random.h"
#include "kv/cache_fixture.h"
#include "kv/explain_oracle.h"
#include "kv/miss_counters.h"

namespace pagoda::kv {
namespace {

constexpr std::uint64_t kPublicTokens = 8;

struct Running {
  OracleScope client;
  OracleText text;
  std::uint64_t prompt_tokens;
  Sequence sequence;
};

class Lookups {
 public:
  Lookups(std::uint64_t seed, bool salted)
      : seed_(seed),
        salted_(salted),
        cache_({.blocks = 24,
                .block_tokens = 4,
                .policy = eviction_policies()[seed % eviction_policies().size()],
                .hash_seed = seed,
                .eviction_records_max = 100'000,
                .on_deduplicate = {}}),
        truth_(cache_) {
    for (const auto& name : kSpaces) truth_.roots()[name] = scope({name.first, name.second}).root();
  }

  void run(std::uint64_t steps) {
    for (std::uint64_t i = 0; i < steps && !testing::Test::HasFailure(); ++i) {
      operate();
      cache_.check();
      for (int look = 0; look < 4; ++look) ask();
    }
  }

  MissCounters counters;
  std::uint64_t lookups = 0;

 private:
  const std::array<std::pair<std::string, std::string>, 3> kSpaces = {
      {{"space", ""}, {"space", "adapter"}, {"other", ""}}};

  std::uint64_t random(std::uint64_t bound) { return random_bits(seed_, 1, draws_++) % bound; }

  // Owner 1 has two salts, owner 2 one; two more salts are nobody's.
  OracleScope random_client() {
    const std::uint64_t space = random(8);
    const auto& name = kSpaces[space < 6 ? 0 : space - 5];
    OracleScope client = {.space = name.first, .adapter = name.second};
    if (!salted_) return client;
    const std::uint64_t who = random(5);
    client.salt = std::string(1, static_cast<char>('a' + who));
    client.owner = who < 2 ? 1 : who == 2 ? 2 : 0;
    client.public_tokens = kPublicTokens;
    return client;
  }
  static std::vector<std::string> siblings(const OracleScope& client) {
    if (client.owner == 0) return {};
    return client.owner == 1 ? std::vector<std::string>{"a", "b"} : std::vector<std::string>{"c"};
  }
  CacheScope scope(const OracleScope& client) {
    CacheScope made =
        cache_.scope(client.space, client.salt, client.adapter, OwnerId(client.owner)).value();
    made.public_tokens = client.public_tokens;
    return made;
  }

  // A few beginnings that part now and then, and prompts that were asked before: the same, longer,
  // shorter, or with one token changed.
  OracleText random_prompt() {
    OracleText prompt;
    if (!asked_.empty() && random(3) != 0) {
      prompt = asked_[random(asked_.size())];
      const std::uint64_t change = random(4);
      if (change == 0) prompt.resize(1 + random(prompt.size()));
      if (change == 1)
        prompt[random(prompt.size())] = TokenId(90 + static_cast<std::uint32_t>(random(3)));
      if (change == 2) prompt = prompt + random_tokens(1 + random(6));
      return prompt;
    }
    return counting(static_cast<std::uint32_t>(random(3)) * 20,
                    static_cast<std::uint32_t>(random(11))) +
           random_tokens(1 + random(9));
  }
  OracleText random_tokens(std::uint64_t count) {
    OracleText tokens;
    for (std::uint64_t i = 0; i < count; ++i) {
      tokens.emplace_back(static_cast<std::uint32_t>(random(3)));
    }
    return tokens;
  }

  void operate() {
    cache_.advance_time(cache_.clock().time_ns + static_cast<std::int64_t>(random(3)) * 10'000'000);
    const std::uint64_t dice = random(20);
    if (dice == 0 && random(3) == 0) return clear();
    if (running_.empty() || (dice < 7 && running_.size() < 3)) return open();
    const std::size_t index = random(running_.size());
    if (dice < 15) return grow(index);
    close(index);
  }

  void clear() {
    cache_.clear();
    truth_.after_eviction({}, true);
  }

  void open() {
    const OracleScope client = random_client();
    const OracleText prompt = random_prompt();
    const CacheScope where = scope(client);
    const Match match = cache_.match(where, prompt);
    auto outcome = cache_.open(where, match, prompt);
    auto* const opened = std::get_if<Opened>(&outcome);
    if (opened == nullptr) return;
    truth_.after_eviction(client.account(), false);
    for (const Copy& copy : opened->copies) cache_.copied(copy);
    if (match.partial) truth_.released(*match.partial);
    asked_.push_back(prompt);
    running_.push_back({client, prompt, prompt.size(), std::move(opened->sequence)});
  }

  void grow(std::size_t index) {
    Running& request = running_[index];
    const std::uint64_t done = request.sequence.tokens_computed();
    if (done == request.text.size()) request.text = request.text + random_tokens(1 + random(5));
    const std::uint64_t to = done + 1 + random(request.text.size() - done);
    auto room = cache_.reserve(request.sequence, to);
    if (std::holds_alternative<OutOfBlocks>(room)) return close(index);
    truth_.after_eviction(request.client.account(), false);
    cache_.commit(request.sequence, std::span(request.text).subspan(done, to - done));
    truth_.after_growth();
    truth_.committed(request.sequence, done, request.prompt_tokens);
  }

  void close(std::size_t index) {
    Running& request = running_[index];
    for (const BlockId block : request.sequence.table(0)) {
      const auto node = cache_.pool().owner(block);
      if (node) truth_.released(*node);
    }
    running_.erase(running_.begin() + static_cast<std::ptrdiff_t>(index));
    truth_.after_growth();
  }

  void ask() {
    const OracleScope client = random_client();
    const OracleText prompt = random_prompt();
    const Explanation why =
        cache_.explain(scope(client), prompt, cache_.match(scope(client), prompt));
    const ExpectedMiss truth = truth_.explain(client, prompt, siblings(client));
    ++lookups;
    counters.add(why);
    std::string told = "seed " + std::to_string(seed_) + ", lookup " + std::to_string(lookups) +
                       " as \"" + client.salt + "\" in " + client.space + "/" + client.adapter +
                       ":";
    for (const TokenId token : prompt) told += " " + std::to_string(token.value());
    SCOPED_TRACE(told);
    EXPECT_EQ(reason_name(why.reason), reason_name(truth.reason));
    EXPECT_EQ(why.prompt_tokens, prompt.size());
    EXPECT_EQ(why.stops_at(), truth.matched);
    EXPECT_EQ(why.tokens_reachable, truth.reachable);
    EXPECT_EQ(why.eviction.has_value(), !truth.evictions.empty());
    EXPECT_TRUE(!why.eviction || std::find(truth.evictions.begin(), truth.evictions.end(),
                                           *why.eviction) != truth.evictions.end());
    EXPECT_EQ(why.stored.empty(), truth.goes_on.empty());
    const bool is_stored =
        std::any_of(truth.goes_on.begin(), truth.goes_on.end(), [&](const OracleText& text) {
          const auto length = std::min<std::size_t>(text.size(), Explanation::kStoredTokensMax);
          return why.stored ==
                 OracleText(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(length));
        });
    EXPECT_EQ(is_stored, !truth.goes_on.empty()) << "what is shown is what the cache has";
  }

  std::uint64_t seed_;
  bool salted_;
  Cache cache_;
  ExplainOracle truth_;
  std::vector<Running> running_;
  std::vector<OracleText> asked_;
  std::uint64_t draws_ = 0;
};

TEST(ExplainModel, AReferenceThatKnowsTheTruthSaysTheSameOfEveryLookup) {
  std::array<std::uint64_t, kMissReasons> seen = {};
  std::uint64_t lookups = 0;
  std::uint64_t for_others = 0;
  for (std::uint64_t seed = 0; seed < 100 && !HasFailure(); ++seed) {
    Lookups world(seed, seed % 3 != 0);
    world.run(150);
    lookups += world.lookups;
    for_others += world.counters.requests_evicted_for_others;
    for (std::size_t i = 0; i < kMissReasons; ++i) seen[i] += world.counters.by_reason[i].requests;
  }
  EXPECT_GE(lookups, 50'000u);
  for (const MissReason reason :
       {MissReason::kNone, MissReason::kTooShort, MissReason::kEvicted, MissReason::kCleared,
        MissReason::kOtherAdapter, MissReason::kOtherFormat, MissReason::kOtherSalt,
        MissReason::kDiffers, MissReason::kNeverSeen}) {
    EXPECT_GT(seen[static_cast<std::size_t>(reason)], 200u) << reason_name(reason);
  }
  EXPECT_GT(for_others, 200u);
  EXPECT_GT(seen[static_cast<std::size_t>(MissReason::kEvicted)], for_others + 200);
}

}  // namespace
}  // namespace pagoda::kv
