#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "cli/captured_command.h"
#include "test_data.h"

namespace pagoda::cli {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;

const std::string kStories = test_data() + "/models/stories260K.gguf";

Captured run_inspect(std::vector<std::string> words) {
  words.insert(words.begin(), "inspect");
  return run_captured(words);
}

TEST(InspectCommand, StoriesAreReportedInTextAndInOneJsonValue) {
  const Captured text = run_inspect({kStories});
  EXPECT_EQ(text.exit_status, 0);
  EXPECT_THAT(text.out, AllOf(HasSubstr("architecture: llama"), HasSubstr("260,032"),
                              HasSubstr("640 bytes (640 B)"), HasSubstr("320.00 KiB")));
  EXPECT_THAT(text.err, IsEmpty());
  const Captured json = run_inspect({kStories, "--json"});
  EXPECT_EQ(json.exit_status, 0);
  const nlohmann::json found = nlohmann::json::parse(json.out);
  EXPECT_EQ(found["tensors"]["parameters"], 260032);
  EXPECT_EQ(found["kv_cache"]["bytes_per_token"], 5 * 4 * (8 + 8) * 2);
  EXPECT_EQ(found["kv_cache"]["bytes_per_full_context"], 5 * 4 * (8 + 8) * 2 * 512);
  // Heads of 8 have no groups of 32 values, which int4 wants.
  const nlohmann::json expected = {{"fp16", 640}, {"bf16", 640}, {"fp8", 400}, {"int8", 400}};
  EXPECT_EQ(found["kv_cache"]["bytes_per_token_by_dtype"], expected);
  EXPECT_THAT(text.out, AllOf(HasSubstr("  in int8       400 bytes"), Not(HasSubstr("in int4"))));
}

TEST(InspectCommand, AFileThatCannotBeReadIsAnErrorOnStderrAndStatus1) {
  const Captured outcome = run_inspect({"/nowhere/x.gguf", "--json"});
  EXPECT_EQ(outcome.exit_status, 1);
  EXPECT_THAT(outcome.out, IsEmpty());
  EXPECT_THAT(outcome.err, StartsWith("error: /nowhere/x.gguf: cannot open"));
}

}  // namespace
}  // namespace pagoda::cli
