// pagoda verify over a model of every kind of layer, as its file has it and quantised: cache,
// forks, preemption, chunks, threads and tiers give one digest.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "model/quantised_copy.h"
#include "model/test_model.h"
#include "verify/verify.h"

namespace pagoda::verify {
namespace {

using gguf::TensorType;

struct Kind {
  const char* name;
  const char* model;
  std::optional<TensorType> type = {};
  // Sequences whose layers have windows hardly grow, and no pool makes one give way to others:
  // engine/invariance_test.cc preempts them.
  bool preempts = true;
};
void PrintTo(const Kind& kind, std::ostream* out) { *out << kind.name; }

class VerifyKinds : public testing::TestWithParam<Kind> {};

TEST_P(VerifyKinds, EveryWayGivesOneDigest) {
  const Kind& kind = GetParam();
  const std::string name = kind.model + std::string(".gguf");
  std::optional<model::QuantisedCopy> copy;
  if (kind.type) copy.emplace(name, *kind.type);
  VerifyOptions options;
  options.model = copy ? copy->path() : model::test_model_path(name);
  options.device.kind = app::DeviceKind::kCpu;
  options.folder = testing::TempDir();
  options.prompt_tokens = 80;  // beyond the windows of 24 tokens
  options.new_tokens = 24;
  options.json = true;
  testing::internal::CaptureStdout();
  const int status = verify(options);
  std::fflush(stdout);
  const std::string out = testing::internal::GetCapturedStdout();
  EXPECT_EQ(status, 0) << out;
  const auto json = nlohmann::json::parse(out, nullptr, false);
  ASSERT_TRUE(json.is_object()) << out;
  EXPECT_EQ(json["equal"], true) << out;
  std::vector<std::string> left_out;
  for (const auto& way : json["ways"]) {
    if (way["shown"] == false) {
      left_out.push_back(way["way"]);
    } else {
      EXPECT_EQ(way["digest"], json["ways"][0]["digest"]) << way.dump();
    }
  }
  std::vector<std::string> expected = {"remote tier"};  // no store was given
  if (!kind.preempts) expected.push_back("preempted");
  EXPECT_THAT(left_out, testing::UnorderedElementsAreArray(expected)) << out;
  EXPECT_GE(json["ways"].size(), 15U) << out;
}

constexpr TensorType kQ8_0 = TensorType::kQ8_0;
constexpr TensorType kQ4_0 = TensorType::kQ4_0;

// The experts of gpt-oss are MXFP4 in either file.
INSTANTIATE_TEST_SUITE_P(
    Kinds, VerifyKinds,
    testing::Values(Kind{"Dense", "arch_qwen3"}, Kind{"DenseQ4_0", "arch_qwen3", kQ4_0},
                    Kind{"Windowed", "arch_gemma3", {}, false},
                    Kind{"WindowedQ8_0", "arch_gemma3", kQ8_0, false},
                    Kind{"Latent", "arch_deepseek3"}, Kind{"LatentQ8_0", "arch_deepseek3", kQ8_0},
                    Kind{"Experts", "arch_qwen3moe"}, Kind{"ExpertsQ4_0", "arch_qwen3moe", kQ4_0},
                    Kind{"Sinks", "arch_gpt_oss"}, Kind{"SinksQ8_0", "arch_gpt_oss", kQ8_0}),
    [](const auto& instance) { return std::string(instance.param.name); });

}  // namespace
}  // namespace pagoda::verify
