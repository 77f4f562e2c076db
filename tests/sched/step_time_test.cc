// Step times predicted on machines whose times are known: formulas, with and without disturbances.
#include "sched/step_time.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <vector>

#include "base/random.h"

namespace pagoda::sched {
namespace {

using Machine = std::function<double(const StepWork&)>;

// About an H200 with a model of 8B: 5 ms for the weights, 28 us a token, attention.
double linear(const StepWork& work) {
  return 5e-3 + 28e-6 * work.tokens + 4e-9 * work.prompt_keys + 30e-9 * work.decode_keys;
}

// Weights are read once, whatever the tokens; beyond some of them the products take longer.
double roofline(const StepWork& work) {
  return std::max(5e-3, 28e-6 * work.tokens) + 4e-9 * work.prompt_keys + 30e-9 * work.decode_keys;
}

class Load {
 public:
  // Draws a step of up to 64 sequences that decode, and mostly a prompt's chunk.
  StepWork draw(std::uint32_t prompt_tokens_most = 8192) {
    StepWork work;
    for (std::uint64_t i = between(1, 64); i > 0; --i) {
      ++work.tokens;
      work.decode_keys += static_cast<double>(between(100, 4000));
    }
    if (between(0, 3) == 0) return work;
    const std::uint64_t tokens = between(2, prompt_tokens_most);
    const std::uint64_t first = between(0, 16'000);
    add_prompt(work, first, tokens);
    return work;
  }
  static void add_prompt(StepWork& work, std::uint64_t first, std::uint64_t tokens) {
    const auto rows = static_cast<double>(tokens);
    work.tokens += static_cast<std::uint32_t>(tokens);
    work.prompt_tokens += static_cast<std::uint32_t>(tokens);
    work.prompt_keys += rows * static_cast<double>(first) + rows * (rows + 1) / 2;
  }
  // About normal, of mean 0 and deviation 1.
  double noise() {
    double sum = -6;
    for (int i = 0; i < 12; ++i) sum += static_cast<double>(between(0, 1'000'000)) * 1e-6;
    return sum;
  }
  std::uint64_t between(std::uint64_t low, std::uint64_t high) {
    return low + random_bits(11, 3, count_++) % (high - low + 1);
  }

 private:
  std::uint64_t count_ = 0;
};

// Returns the largest relative error of predictions for 200 steps that were not measured.
double worst_error(const StepTime& times, const Machine& machine, std::uint32_t most = 8192) {
  Load load;
  for (int i = 0; i < 50'000; ++i) load.between(0, 1);  // other steps than measured ones
  double worst = 0;
  for (int i = 0; i < 200; ++i) {
    const StepWork work = load.draw(most);
    worst = std::max(worst, std::abs(times.costs().seconds(work) / machine(work) - 1));
  }
  return worst;
}

TEST(StepTime, KnowsNothingBeforeItMeasures) {
  const StepTime times;
  EXPECT_EQ(times.costs().seconds({.tokens = 100, .prompt_tokens = 100}), 0);
  EXPECT_EQ(times.costs().prompt_tokens_trusted, 32u);
}

TEST(StepTime, FindsTheCostsOfALinearMachine) {
  StepTime times;
  Load load;
  for (int i = 0; i < 100; ++i) {
    const StepWork work = load.draw();
    times.note(work, linear(work));
  }
  EXPECT_LT(worst_error(times, linear), 0.01);
  EXPECT_NEAR(times.costs().token_s, 28e-6, 1e-6);
  EXPECT_NEAR(times.costs().prompt_key_s, 4e-9, 2e-10);
  EXPECT_LT(times.costs().spread, 0.02);
}

TEST(StepTime, NoiseIsAveragedAndToldAsSpread) {
  StepTime times;
  Load load;
  for (int i = 0; i < 400; ++i) {
    const StepWork work = load.draw();
    times.note(work, linear(work) * (1 + 0.1 * load.noise()));
  }
  EXPECT_LT(worst_error(times, linear), 0.1);
  // The mean of |x| is 0.8 deviations.
  EXPECT_NEAR(times.costs().spread, 0.08, 0.03);
}

TEST(StepTime, AMachineThatGetsSlowerIsKnownSoon) {
  const auto slow = [](const StepWork& work) { return 3 * linear(work); };
  StepTime times;
  Load load;
  for (int i = 0; i < 300; ++i) {
    const StepWork work = load.draw(2000);
    times.note(work, linear(work));
  }
  for (int i = 0; i < 100; ++i) {
    const StepWork work = load.draw(2000);
    times.note(work, slow(work));
  }
  EXPECT_LT(worst_error(times, slow, 2000), 0.25);
  for (int i = 0; i < 300; ++i) {
    const StepWork work = load.draw(2000);
    times.note(work, linear(work));
  }
  EXPECT_LT(worst_error(times, linear, 2000), 0.1) << "and one that gets faster again";
}

TEST(StepTime, AFirstSlowStepIsForgotten) {
  StepTime times;
  Load load;
  StepWork first;
  Load::add_prompt(first, 0, 700);
  times.note(first, 2.0);  // kernels are loaded
  for (int i = 0; i < 30; ++i) {
    const StepWork work = load.draw(2000);
    times.note(work, linear(work));
  }
  EXPECT_LT(worst_error(times, linear, 2000), 0.1);
}

TEST(StepTime, ADisturbedStepMovesLittle) {
  StepTime times;
  Load load;
  for (int i = 0; i < 200; ++i) {
    const StepWork work = load.draw();
    times.note(work, linear(work));
  }
  StepWork disturbed = load.draw();
  Load::add_prompt(disturbed, 100, 500);
  times.note(disturbed, 10);
  EXPECT_LT(worst_error(times, linear), 0.15);
}

// Chunks of one prompt of 64k tokens: attention, which was little, is most of the time in the end.
TEST(StepTime, FollowsAttentionAsAContextGrows) {
  const auto quadratic = [](const StepWork& work) {
    return 5e-3 + 28e-6 * work.tokens + 8e-9 * work.prompt_keys;
  };
  StepTime times;
  double worst = 0;
  for (std::uint64_t first = 0; first < 64'000; first += 1000) {
    StepWork work = {.tokens = 8, .decode_keys = 8000};
    Load::add_prompt(work, first, 1000);
    const double seconds = quadratic(work);
    if (first > 4000) {
      worst = std::max(worst, std::abs(times.costs().seconds(work) / seconds - 1));
    }
    times.note(work, seconds);
  }
  EXPECT_LT(worst, 0.1);
}

// Where the two meet, at 180 tokens, a line is off by a third; where chunks are cut it is not.
TEST(StepTime, ARooflineIsPredictedWhereChunksAreCut) {
  StepTime times;
  Load load;
  for (int i = 0; i < 300; ++i) {
    const StepWork work = load.draw();
    times.note(work, roofline(work));
  }
  EXPECT_LT(worst_error(times, roofline), 0.4);
  for (std::uint32_t tokens = 1000; tokens <= 8000; tokens += 1000) {
    StepWork work = {.tokens = 60, .decode_keys = 60'000};
    Load::add_prompt(work, 2000, tokens);
    EXPECT_NEAR(times.costs().seconds(work) / roofline(work), 1, 0.1) << tokens;
  }
}

TEST(StepTime, ThousandsOfDecodeStepsLeaveWhatPromptsTook) {
  StepTime times;
  Load load;
  for (int i = 0; i < 100; ++i) {
    const StepWork work = load.draw();
    times.note(work, linear(work));
  }
  for (int i = 0; i < 5000; ++i) {
    const StepWork work = {.tokens = 3, .decode_keys = 3000};
    times.note(work, linear(work));
  }
  EXPECT_LT(worst_error(times, linear), 0.02);
}

TEST(StepTime, TrustGrowsWithWhatWasMeasured) {
  StepTime times;
  StepWork work;
  Load::add_prompt(work, 0, 100);
  times.note(work, linear(work));
  EXPECT_EQ(times.costs().prompt_tokens_trusted, 400u);
  times.note({.tokens = 1, .decode_keys = 100}, 5e-3);
  EXPECT_EQ(times.costs().prompt_tokens_trusted, 400u);
}

TEST(StepTime, OddMeasurementsAreLeftOut) {
  StepTime times;
  for (const double seconds : {0.0, -1.0, std::nan(""), HUGE_VAL}) {
    times.note({.tokens = 10, .prompt_tokens = 10, .prompt_keys = 55}, seconds);
  }
  times.note({}, 1);
  EXPECT_EQ(times.costs().seconds({.tokens = 100}), 0);
}

}  // namespace
}  // namespace pagoda::sched
