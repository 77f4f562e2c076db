// Runs seeds of the engine simulation. `sim_test --seed=N` replays one with a trace of every step.
#include "sim/engine_sim.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <iostream>
#include <string_view>

#include "reported_skips.h"

namespace pagoda::sim {
namespace {

std::uint64_t seeds() {
  const char* const asked = std::getenv("PAGODA_SIM_SEEDS");
  return asked != nullptr ? std::strtoull(asked, nullptr, 10) : 6000;
}

TEST(EngineSim, EverySequenceIsThatOfItsRequestAlone) {
  SimOutcome all;
  std::uint64_t timed = 0;
  for (std::uint64_t seed = 0; seed < seeds(); ++seed) {
    const SimOutcome outcome = simulate({.seed = seed});
    ASSERT_EQ(outcome.failure, "") << "replay with: sim_test --seed=" << seed;
    all.answers += outcome.answers;
    all.answers_whole += outcome.answers_whole;
    all.texts_ended += outcome.texts_ended;
    all.preemptions += outcome.preemptions;
    all.answers_dropping += outcome.answers_dropping;
    all.dropping_preemptions += outcome.dropping_preemptions;
    all.tokens_cached += outcome.tokens_cached;
    all.forks += outcome.forks;
    all.tokens_loaded += outcome.tokens_loaded;
    all.pages_read += outcome.pages_read;
    all.pages_written += outcome.pages_written;
    all.tier_faults += outcome.tier_faults;
    all.removals += outcome.removals;
    all.pages_removed += outcome.pages_removed;
    all.removals_late += outcome.removals_late;
    all.pauses += outcome.pauses;
    all.retained += outcome.retained;
    all.retain_refused += outcome.retain_refused;
    timed += outcome.timed ? 1 : 0;
    all.drafts += outcome.drafts;
    all.draft_tokens += outcome.draft_tokens;
    all.drafts_accepted += outcome.drafts_accepted;
    all.model_drafts_accepted += outcome.model_drafts_accepted;
    for (std::size_t i = 0; i < kv::kMissReasons; ++i) all.reasons[i] += outcome.reasons[i];
  }
  // The seeds must reach the cases they are there for.
  EXPECT_GT(all.answers_whole, all.answers / 2);
  EXPECT_GT(all.texts_ended, seeds() / 2);
  EXPECT_GT(all.preemptions, seeds() / 10);
  EXPECT_GT(all.answers_dropping, seeds() / 4);
  EXPECT_GT(all.dropping_preemptions, seeds() / 40);
  EXPECT_GT(all.tokens_cached, seeds());
  EXPECT_GT(all.forks, seeds() / 2);
  EXPECT_GT(all.tokens_loaded, seeds() / 2);
  EXPECT_GT(all.pages_read, seeds() / 4);
  EXPECT_GT(all.pages_written, seeds());
  EXPECT_GT(all.tier_faults, seeds() / 10);
  EXPECT_GT(all.removals, seeds() / 20);
  EXPECT_GT(all.pages_removed, seeds() / 200);
  EXPECT_GT(all.removals_late, 0u);
  EXPECT_GT(all.pauses, seeds());
  EXPECT_GT(all.retained, seeds() / 4);
  EXPECT_GT(all.retain_refused, seeds() / 4);
  EXPECT_GT(timed, seeds() / 5);
  EXPECT_GT(all.drafts, seeds());
  EXPECT_GT(all.drafts_accepted, seeds());
  EXPECT_GT(all.model_drafts_accepted, seeds() / 4);
  EXPECT_GT(all.draft_tokens, all.drafts_accepted * 5 / 4);
  for (const kv::MissReason reason :
       {kv::MissReason::kNone, kv::MissReason::kSharingOff, kv::MissReason::kPromptLogprobs,
        kv::MissReason::kInWork, kv::MissReason::kEvicted, kv::MissReason::kOtherSalt,
        kv::MissReason::kDiffers, kv::MissReason::kNeverSeen, kv::MissReason::kObserved}) {
    EXPECT_GT(all.reasons[static_cast<std::size_t>(reason)], seeds() / 100) << reason_name(reason);
  }
}

class SabotageShows : public testing::TestWithParam<Sabotage> {};

// Not every broken page is read again, so that one seed proves nothing; most must turn red.
TEST_P(SabotageShows, InMostSeedsWhereItHappened) {
  std::uint64_t happened = 0;
  std::uint64_t seen = 0;
  for (std::uint64_t seed = 0; seed < 400; ++seed) {
    const SimOutcome outcome = simulate({.seed = seed, .sabotage = GetParam()});
    happened += outcome.sabotaged ? 1 : 0;
    seen += outcome.failure.empty() ? 0 : 1;
  }
  EXPECT_GT(happened, 20u);
  EXPECT_GT(seen * 10, happened * 5);
}

INSTANTIATE_TEST_SUITE_P(Kinds, SabotageShows,
                         testing::Values(Sabotage::kStaleBlock, Sabotage::kForeignBlock,
                                         Sabotage::kShiftedRows, Sabotage::kFreedTooEarly));

class StoreSabotageShows : public testing::TestWithParam<StoreSabotage> {};

TEST_P(StoreSabotageShows, InMostSeedsWhereItHappened) {
  std::uint64_t happened = 0;
  std::uint64_t seen = 0;
  for (std::uint64_t seed = 0; seed < 1000; ++seed) {
    const SimOutcome outcome = simulate({.seed = seed, .store_sabotage = GetParam()});
    happened += outcome.sabotaged ? 1 : 0;
    seen += outcome.failure.empty() ? 0 : 1;
  }
  EXPECT_GT(happened, 20u);
  EXPECT_GT(seen * 10, happened * 5);
}

INSTANTIATE_TEST_SUITE_P(Kinds, StoreSabotageShows,
                         testing::Values(StoreSabotage::kForeignPage, StoreSabotage::kTornPage));

}  // namespace
}  // namespace pagoda::sim

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  constexpr std::string_view kSeed = "--seed=";
  if (argc > 1 && std::string_view(argv[1]).starts_with(kSeed)) {
    const std::uint64_t seed = std::strtoull(argv[1] + kSeed.size(), nullptr, 10);
    const auto outcome = pagoda::sim::simulate({.seed = seed, .trace = &std::cout});
    std::cout << (outcome.failure.empty() ? "all was well" : outcome.failure) << '\n';
    return outcome.failure.empty() ? 0 : 1;
  }
  return pagoda::run_tests();
}
