// pagoda bench speculate: every kind of draft beside the same request without.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "app/device_choice.h"
#include "bench/bench_command.h"

namespace pagoda::bench {
namespace {

using nlohmann::json;

// A model that drafts for itself is never wrong, whoever chooses its tokens.
TEST(BenchSpeculate, MeasuresEveryKindOfDraftBesideTheSameAnswerWithout) {
  std::vector<std::string> words = {"-n",      "24", "--repeats",     "1",
                                    "--lines", "2",  "--model-draft", story_model()};
  // Where no GPU is nobody names the CPU.
  if (app::may_run_on_gpu({})) words.insert(words.end(), {"--device", "cpu"});
  const json report = bench_json("speculate", words);
  std::vector<std::string> kinds;
  for (const json& row : report["rows"]) {
    kinds.push_back(row["drafts"]);
    EXPECT_EQ(row["equal"], "yes") << kinds.back();
    EXPECT_GE(row["tokens_per_step"], 1) << kinds.back();
    EXPECT_DOUBLE_EQ(row["ratio"], row["tokens_per_second_on"].get<double>() /
                                       row["tokens_per_second_off"].get<double>());
  }
  EXPECT_THAT(kinds, testing::ElementsAre(
                         "tree, repeated question", "tree, repeated, sampled",
                         "suffix, copied text", "ngram, copied text", "prediction, right",
                         "constraint, sentences", "default, no draft fits", "draft model",
                         "draft model, sampled", "recorded, 4 tokens, 30 % wrong",
                         testing::MatchesRegex("model of a tenth, [0-9]+ tokens, 30 % wrong")));
  // Recorded drafts are offered whatever they cost.
  const json& recorded = report["rows"][9];
  EXPECT_GT(recorded["acceptance"], 0);
  EXPECT_LT(recorded["acceptance"], 1);
  EXPECT_GE(report["ceiling"], 1);
  EXPECT_GE(report["shared_8_grams"], 0);
  EXPECT_LE(report["shared_8_grams"], 1);
  EXPECT_GT(report["draft_model_expected"], 0);
  EXPECT_DOUBLE_EQ(report["draft_model_share"], report["rows"][10]["ratio"].get<double>() /
                                                    report["draft_model_expected"].get<double>());
}

}  // namespace
}  // namespace pagoda::bench
