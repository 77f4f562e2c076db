// What the quality gate finds and says.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "app/kv_dtype.h"
#include "eval/cache_home.h"
#include "eval/quality_gate.h"
#include "eval/verdict_key.h"

namespace pagoda::eval {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

Measurement measured(std::uint64_t positions, double kl_mean) {
  Measurement made;
  made.bits_per_token = 100;
  made.divergence = {.rows = positions, .kl_mean = kl_mean, .same_top = 0.991};
  return made;
}

TEST(QualityGate, FormatsBelowTheBaselineAreAllButThoseOfSixteenBitsAndMore) {
  for (const char* const name :
       {"fp32", "fp16", "bf16", "fp16 skip 0", "fp16/bf16", "fp32/bf16 skip 0"}) {
    EXPECT_FALSE(is_below_baseline(name)) << name;
  }
  for (const char* const name :
       {"int8", "int4", "k8v4", "fp8", "streaming:4+1024", "int8 skip 0,1", "bf16/int8",
        "int8/bf16", "bf16@window:512", "fp16/bf16@window:512"}) {
    EXPECT_TRUE(is_below_baseline(name)) << name;
  }
}

TEST(QualityGate, TheVerdictOfMostPositionsCounts) {
  const CacheHome home;
  const app::VerdictStore store = app::VerdictStore::of_user();
  const app::VerdictKey key = {kKvSubject, "int8", "neon.5"};
  EXPECT_FALSE(find_measurement(store, "abc", key));
  const auto write = [&](const app::VerdictKey& of, std::uint64_t positions, double kl) {
    ASSERT_TRUE(store
                    .write("abc", {.key = of,
                                   .measured_s = 1,
                                   .settings = nlohmann::ordered_json(positions),
                                   .result = measurement_json(measured(positions, kl))})
                    .ok());
  };
  write(key, 2000, 0.5);
  write(key, 100, 0.25);
  write({kKvSubject, "int4", "neon.5"}, 9000, 0.75);
  write({kKvSubject, "int8", "neon.6"}, 9000, 0.75);
  write({"compute", "int8", "neon.5"}, 9000, 0.75);
  EXPECT_DOUBLE_EQ(find_measurement(store, "abc", key).value().divergence.kl_mean, 0.5);
  EXPECT_FALSE(find_measurement(store, "abd", key));
}

TEST(QualityGate, AVerdictOfFewPositionsCountsLeast) {
  const CacheHome home;
  const app::VerdictStore store = app::VerdictStore::of_user();
  const app::VerdictKey key = {kKvSubject, "int8", "neon.5"};
  Measurement full_of_few = measured(32, 0.001);
  full_of_few.perplexity_windows.value = 20;
  Measurement quick = measured(200, 0.002);
  int settings = 0;
  for (const Measurement& each : {full_of_few, quick, measured(32, 0.003)}) {
    ASSERT_TRUE(store
                    .write("abc", {.key = key,
                                   .measured_s = 1,
                                   .settings = nlohmann::ordered_json(++settings),
                                   .result = measurement_json(each)})
                    .ok());
  }
  EXPECT_DOUBLE_EQ(find_measurement(store, "abc", key).value().divergence.kl_mean, 0.002);
  EXPECT_THAT(measured_line({.configuration = "int8"}, full_of_few),
              HasSubstr("of 32 positions: no verdict, as 32 positions were measured"));
}

TEST(QualityGate, AQuickVerdictNeverOutweighsAFullOne) {
  const CacheHome home;
  const app::VerdictStore store = app::VerdictStore::of_user();
  const app::VerdictKey key = {kKvSubject, "int8", "neon.5"};
  int settings = 0;
  const auto write = [&](const Measurement& made) {
    ASSERT_TRUE(store
                    .write("abc", {.key = key,
                                   .measured_s = settings,
                                   .settings = nlohmann::ordered_json(++settings),
                                   .result = measurement_json(made)})
                    .ok());
  };
  const auto kl_found = [&] { return find_measurement(store, "abc", key)->divergence.kl_mean; };
  Measurement with_tasks = measured(2000, 0.5);
  with_tasks.tasks = {{.task = "needle", .right = 1, .asked = 2, .right_baseline = 2}};
  Measurement with_windows = measured(2000, 0.25);
  with_windows.perplexity_windows = {.value = 12, .error = 1};
  write(measured(2000, 0.75));
  EXPECT_DOUBLE_EQ(kl_found(), 0.75);
  for (const Measurement& full : {with_tasks, with_windows}) {
    write(full);
    EXPECT_DOUBLE_EQ(kl_found(), full.divergence.kl_mean) << "the newest of the full ones";
    write(measured(2000, 0.001));
    write(measured(4000, 0.001));
    EXPECT_DOUBLE_EQ(kl_found(), full.divergence.kl_mean);
  }
}

TEST(QualityGate, LayersThatAreSkippedAreNamedInOneWay) {
  model::KvCacheDtype choice = kv::memory::Element::kInt8;
  kv::memory::PageLayout layout;
  EXPECT_EQ(app::kv_choice_name(choice, layout), "int8");
  choice.skip_layers = {10, 2, 10};
  EXPECT_EQ(app::kv_choice_name(choice, layout), "int8 skip 2,10");
  choice.skip_windows = true;
  EXPECT_EQ(app::kv_choice_name(choice, layout), "int8 skip 2,10,sliding_window");
  choice.skip_layers.clear();
  EXPECT_EQ(app::kv_choice_name(choice, layout), "int8 skip sliding_window");
  choice = {};
  choice.skip_layers = {0};
  layout.elements = kv::memory::Element::kF16;
  EXPECT_EQ(app::kv_choice_name(choice, layout), "fp16") << "there is nothing else to keep";
  choice.keys = kv::memory::Element::kInt8;
  EXPECT_EQ(app::kv_choice_name(choice, layout), "int8/fp16 skip 0");
  layout.values_in_keys = true;  // MLA
  EXPECT_EQ(app::kv_choice_name(choice, layout), "int8 skip 0");
}

TEST(QualityGate, LinesNameBitsTokensAndFigures) {
  const ServedKv kv = {.configuration = "int8", .bits_per_token = 11520, .tokens = 81920};
  const std::string good = measured_line(kv, measured(2000, 0.00012));
  EXPECT_THAT(good, HasSubstr("KV int8: 11,520 bits a token, 81,920 tokens fit"));
  EXPECT_THAT(good, HasSubstr("mean KL 0.00012, same top token 99.10 % of 2,000 positions"));
  EXPECT_THAT(good, Not(HasSubstr("below")));
  EXPECT_THAT(measured_line(kv, measured(2000, 0.02)), HasSubstr("below the bounds"));
  EXPECT_THAT(unmeasured_line(kv, "pagoda eval m.gguf --kv int8"),
              HasSubstr("tokens fit; quality not measured: pagoda eval m.gguf --kv int8"));
}

}  // namespace
}  // namespace pagoda::eval
