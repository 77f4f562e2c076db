// --quantization and --quantized-cache-size, through the command line.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <optional>
#include <set>

#include "cli/captured_command.h"
#include "hf/test_folder.h"
#include "test_data.h"

namespace pagoda::cli {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

// The program's cache is in a folder that goes with the test.
class Quantization : public testing::Test {
 protected:
  Quantization() {
    if (const char* const folder = std::getenv("XDG_CACHE_HOME")) before_ = folder;
    setenv("XDG_CACHE_HOME", folder_.path().c_str(), 1);
  }
  ~Quantization() override {
    before_ ? setenv("XDG_CACHE_HOME", before_->c_str(), 1) : unsetenv("XDG_CACHE_HOME");
  }

  static Captured run_story(std::vector<std::string> more) {
    std::vector<std::string> words = {
        "run", test_data() + "/models/stories260K.gguf", "-p", "Once upon", "-n", "20"};
    words.insert(words.end(), more.begin(), more.end());
    return run_captured(words);
  }
  std::set<std::string> kept() const {
    return hf::list_names(folder_.path() + "/pagoda/quantized");
  }

 private:
  hf::TestFolder folder_;
  std::optional<std::string> before_;
};

TEST_F(Quantization, TellsTheKnownStoryAndIsDoneOnce) {
  for (const char* const type : {"q8_0", "q4_0", "Q4_K"}) {
    const Captured first = run_story({"--quantization", type});
    EXPECT_EQ(first.exit_status, 0) << first.err;
    EXPECT_THAT(first.out, HasSubstr(" a time, there was a little girl named Lily."));
    EXPECT_THAT(first.err, HasSubstr("quantised to Q"));
    const Captured second = run_story({"--quantization", type});
    EXPECT_EQ(second.out, first.out);
    EXPECT_THAT(second.err, Not(HasSubstr("quantised to")));
  }
  EXPECT_EQ(kept().size(), 7U);  // a file and a digest each, and the lock
}

TEST_F(Quantization, KeepsNoneWhereNoneMayBeKept) {
  for (int i = 0; i < 2; ++i) {
    const Captured story = run_story({"--quantization", "q8_0", "--quantized-cache-size", "0"});
    EXPECT_EQ(story.exit_status, 0) << story.err;
    EXPECT_THAT(story.err,
                AllOf(HasSubstr("quantised to Q8_0"), Not(HasSubstr("--quantized-cache-size"))));
    EXPECT_THAT(kept(), testing::ElementsAre("lock"));
  }
  const Captured warned = run_story({"--quantization", "q8_0", "--quantized-cache-size", "1KiB"});
  EXPECT_EQ(warned.exit_status, 0);
  EXPECT_THAT(warned.err, HasSubstr("more than --quantized-cache-size leaves"));
  EXPECT_THAT(kept(), testing::ElementsAre("lock"));
}

TEST_F(Quantization, OtherNamesAreUsageErrorsThatSayWhatWorks) {
  for (const char* const command : {"run", "chat", "serve"}) {
    const Captured refused = run_captured({command, "-m", "x", "--quantization", "awq"});
    EXPECT_EQ(refused.exit_status, 2) << command;
    EXPECT_THAT(refused.err, HasSubstr("--quantization: awq is not supported: AWQ needs"));
  }
  EXPECT_THAT(run_story({"--quantization", "fp8"}).err, HasSubstr("no fp8 kernels yet; use q8_0"));
  EXPECT_EQ(run_story({"--quantized-cache-size", "much"}).exit_status, 2);
}

TEST_F(Quantization, OfACacheThatCannotBeWrittenIsAnErrorThatNamesTheFolder) {
  setenv("XDG_CACHE_HOME", "/dev/null", 1);
  const Captured refused = run_story({"--quantization", "q8_0"});
  EXPECT_EQ(refused.exit_status, 1);
  EXPECT_THAT(refused.err, HasSubstr("/dev/null/pagoda/quantized: cannot write quantised models "
                                     "there: Not a directory; set XDG_CACHE_HOME"));
}

}  // namespace
}  // namespace pagoda::cli
