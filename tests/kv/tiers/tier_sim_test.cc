// Pages travel out to a slow, failing tier and back, while requests come and go over a small pool.
// Every row holds a digest of its prefix; whatever a request opens must be its own.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "base/random.h"
#include "kv/cache.h"

namespace pagoda::kv {
namespace {

constexpr std::uint32_t kBlockTokens = 3;

std::uint64_t digest(std::span<const TokenId> tokens) {
  std::uint64_t hash = 0x77;
  for (const TokenId token : tokens) hash = (hash ^ token.value()) * 0x9E3779B97F4A7C15u + 1;
  return hash;
}

struct TierScenario {
  std::uint64_t seed = 0;
  std::uint32_t slots = 40;
  std::vector<memory::LayerReach> slices = {{}};
  std::uint64_t failures_in_ten = 1;
  bool torn = false;  // deliberate bug: a copy in moves all rows but the last
};

// Ends moves late, in any order, some without success; bytes are copied when a move ends.
class SlowMover final : public Mover {
 public:
  SlowMover(const TierScenario& scenario, std::uint32_t blocks)
      : pages(std::size_t{blocks} * kBlockTokens, 0),
        slots(std::size_t{scenario.slots} * kBlockTokens, 0),
        scenario_(scenario) {}

  void start(const Move& move) override { running_.push_back(move); }

  std::vector<MoveReport> poll() override {
    std::vector<MoveReport> ended;
    for (std::size_t i = running_.size(); i-- > 0;) {
      if (random_bits(scenario_.seed, 5, draws_++) % 2 == 0) continue;
      const Move move = running_[i];
      running_.erase(running_.begin() + static_cast<std::ptrdiff_t>(i));
      const bool done = random_bits(scenario_.seed, 6, draws_++) % 10 >= scenario_.failures_in_ten;
      if (done) copy(move);
      ended.push_back({move, done});
    }
    return ended;
  }

  std::vector<std::uint64_t> pages;  // [block, token]
  std::vector<std::uint64_t> slots;  // [slot, token]

 private:
  void copy(const Move& move) {
    auto page = pages.begin() + static_cast<std::ptrdiff_t>(move.block.value() * kBlockTokens);
    auto slot = slots.begin() + static_cast<std::ptrdiff_t>(move.slot.value() * kBlockTokens);
    if (move.direction == Direction::kOut) {
      std::copy_n(page, kBlockTokens, slot);
    } else {
      std::copy_n(slot, kBlockTokens - (scenario_.torn ? 1 : 0), page);
    }
  }

  TierScenario scenario_;
  std::vector<Move> running_;
  std::uint64_t draws_ = 0;
};

struct TierReport {
  std::string failure;
  std::uint64_t pages_out = 0;
  std::uint64_t pages_in = 0;
  std::uint64_t loads_that_helped = 0;
};

class TierSim {
 public:
  explicit TierSim(const TierScenario& scenario)
      : scenario_(scenario),
        cache_({.blocks = kBlocks,
                .block_tokens = kBlockTokens,
                .slices = scenario.slices,
                .hash_seed = scenario.seed,
                .tier_slots = scenario.slots,
                .on_join = {}}),
        mover_(scenario, kBlocks) {}

  TierReport run() {
    for (int request = 0; request < 60 && report_.failure.empty(); ++request) {
      serve(random_prompt());
      copy_out();
      cache_.check();
    }
    settle_moves();
    cache_.clear();
    cache_.check();
    if (cache_.pool().blocks_free() != kBlocks) fail("a reference leaked");
    if (cache_.tree().nodes() != 1) fail("a node stayed behind");
    return report_;
  }

 private:
  static constexpr std::uint32_t kBlocks = 30;

  std::uint64_t random(std::uint64_t bound) {
    return random_bits(scenario_.seed, 0, draws_++) % bound;
  }

  std::vector<TokenId> random_prompt() {
    const std::uint64_t family = random(6);
    std::vector<TokenId> prompt;
    const std::uint64_t length = 4 + random(14);
    for (std::uint64_t i = 0; i < length; ++i) {
      const std::uint64_t value = random(15) == 0 ? 99 : family * 20 + i;
      prompt.push_back(TokenId(static_cast<std::uint32_t>(value)));
    }
    return prompt;
  }

  void serve(const std::vector<TokenId>& prompt) {
    const Domain domain = cache_.domain("space", "").value();
    Match match = cache_.match(domain, prompt);
    std::optional<Load> load = bring_in(match);
    if (load) {
      const std::uint64_t promised = match.nodes_in_tiers.size() * kBlockTokens;
      match = cache_.match(domain, prompt);
      if (!move_failed_ && match.tokens < promised) {
        fail("a load did not bring what the match promised");
      }
      if (match.tokens >= promised) ++report_.loads_that_helped;
    }
    auto outcome = cache_.open(domain, match, prompt);
    if (load) cache_.finish_load(*load);
    if (std::holds_alternative<OutOfBlocks>(outcome)) return;
    auto& opened = std::get<Opened>(outcome);
    for (const Copy& copy : opened.copies) {
      for (std::uint32_t t = 0; t < copy.tokens; ++t) page_row(copy.to, t) = page_row(copy.from, t);
      cache_.copied(copy);
    }
    verify(opened.sequence, std::span(prompt).first(match.tokens));
    compute(opened.sequence, prompt, match.tokens);
    cache_.check();
  }

  // Loads what the match found in the tier; nothing when there was nothing or no room.
  std::optional<Load> bring_in(const Match& match) {
    if (match.nodes_in_tiers.empty()) return std::nullopt;
    auto outcome = cache_.begin_load(match);
    if (std::holds_alternative<OutOfBlocks>(outcome)) return std::nullopt;
    Load load = std::move(std::get<Load>(outcome));
    move_failed_ = false;
    for (const Move& move : load.moves) mover_.start(move);
    while (load.moves_running > 0) {
      report_moves(&load);
      cache_.check();
    }
    return load;
  }

  void compute(Sequence& sequence, const std::vector<TokenId>& prompt, std::uint64_t from) {
    const auto reserved = cache_.reserve(sequence, prompt.size());
    if (std::holds_alternative<OutOfBlocks>(reserved)) return;
    for (std::uint64_t p = from; p < prompt.size(); ++p) {
      for (std::uint32_t slice = 0; slice < scenario_.slices.size(); ++slice) {
        page_row(sequence.table(slice)[p / kBlockTokens], p % kBlockTokens) =
            digest(std::span(prompt).first(p + 1));
      }
    }
    cache_.commit(sequence, std::span(prompt).subspan(from));
    verify(sequence, prompt);
  }

  void verify(const Sequence& sequence, std::span<const TokenId> tokens) {
    for (std::uint32_t slice = 0; slice < scenario_.slices.size(); ++slice) {
      const std::uint32_t window = scenario_.slices[slice].window;
      const std::uint64_t first =
          window != 0 && tokens.size() + 1 > window ? tokens.size() + 1 - window : 0;
      for (std::uint64_t p = first; p < tokens.size(); ++p) {
        const BlockId block = sequence.table(slice)[p / kBlockTokens];
        if (page_row(block, p % kBlockTokens) != digest(tokens.first(p + 1))) {
          return fail("row " + std::to_string(p) + " is not what its tokens make it");
        }
      }
    }
  }

  void copy_out() {
    for (const Move& move : cache_.offload({.free_share_wanted = 0.5, .moves_running_max = 6})) {
      mover_.start(move);
    }
    report_moves(nullptr);
  }

  void report_moves(Load* load) {
    for (const MoveReport& ended : mover_.poll()) {
      const bool out = ended.move.direction == Direction::kOut;
      move_failed_ = move_failed_ || !ended.done;
      if (ended.done) ++(out ? report_.pages_out : report_.pages_in);
      cache_.moved(ended, out ? nullptr : load);
    }
  }

  void settle_moves() {
    for (int i = 0; i < 200; ++i) report_moves(nullptr);
  }

  std::uint64_t& page_row(BlockId block, std::uint64_t token) {
    return mover_.pages[std::size_t{block.value()} * kBlockTokens + token];
  }
  void fail(const std::string& what) {
    if (report_.failure.empty()) {
      report_.failure = "seed " + std::to_string(scenario_.seed) + ": " + what;
    }
  }

  TierScenario scenario_;
  Cache cache_;
  SlowMover mover_;
  std::uint64_t draws_ = 0;
  bool move_failed_ = false;
  TierReport report_;
};

TierScenario scenario_of(std::uint64_t seed) {
  TierScenario scenario = {.seed = seed};
  scenario.slots = 8 + static_cast<std::uint32_t>(seed % 5) * 16;
  scenario.failures_in_ten = seed % 4;
  if (seed % 3 == 1) scenario.slices = {{0}, {5}};
  if (seed % 3 == 2) scenario.slices = {{4}};
  return scenario;
}

TEST(TierSim, WhatComesBackIsWhatWentOut) {
  TierReport sum;
  for (std::uint64_t seed = 0; seed < 3000; ++seed) {
    const TierReport report = TierSim(scenario_of(seed)).run();
    ASSERT_EQ(report.failure, "");
    sum.pages_out += report.pages_out;
    sum.pages_in += report.pages_in;
    sum.loads_that_helped += report.loads_that_helped;
  }
  EXPECT_GT(sum.pages_out, 10'000u);
  EXPECT_GT(sum.pages_in, 5'000u);
  EXPECT_GT(sum.loads_that_helped, 2'000u);
}

TEST(TierSim, ATornPageIsFound) {
  int red = 0;
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    TierScenario scenario = scenario_of(seed);
    scenario.torn = true;
    red += TierSim(scenario).run().failure.empty() ? 0 : 1;
  }
  EXPECT_GT(red, 30);
}

}  // namespace
}  // namespace pagoda::kv
