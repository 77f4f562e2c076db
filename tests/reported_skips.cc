#include "reported_skips.h"

#include <gtest/gtest.h>

#include <cerrno>  // program_invocation_short_name
#include <cstdlib>
#include <fstream>
#include <string>

namespace pagoda {
namespace {

// What was given to GTEST_SKIP.
std::string reason_in(const testing::TestResult& result) {
  for (int i = 0; i < result.total_part_count(); ++i) {
    const testing::TestPartResult& part = result.GetTestPartResult(i);
    if (part.skipped()) return part.message();
  }
  return "";
}

// One line, whatever is in it.
std::string folded(std::string text) {
  for (char& c : text) {
    if (c == '\n' || c == '\t' || c == '\r') c = ' ';
  }
  while (text.ends_with(' ')) text.pop_back();
  return text;
}

// What ctest calls this program: PAGODA_TEST_NAME, or the file.
std::string program_name() {
  const char* const name = std::getenv("PAGODA_TEST_NAME");
  return name != nullptr ? name : program_invocation_short_name;
}

class SkipReporter : public testing::EmptyTestEventListener {
 public:
  SkipReporter() {
    if (const char* const path = std::getenv("PAGODA_SKIPS_FILE")) {
      file_.open(path, std::ios::app);
    }
  }
  void OnTestEnd(const testing::TestInfo& test) override {
    if (!test.result()->Skipped()) return;
    // Written at once: several programs may append to the file.
    file_ << folded(program_name()) + "\t" + test.test_suite_name() + "." + test.name() + "\t" +
                 folded(reason_in(*test.result())) + "\n"
          << std::flush;
  }

 private:
  std::ofstream file_;
};

}  // namespace

int run_tests() {
  testing::UnitTest& all = *testing::UnitTest::GetInstance();
  all.listeners().Append(new SkipReporter);  // GoogleTest deletes it
  const int status = RUN_ALL_TESTS();
  const bool only_skipped =
      all.skipped_test_count() > 0 && all.skipped_test_count() == all.test_to_run_count();
  return status == 0 && only_skipped ? kSkippedStatus : status;
}

}  // namespace pagoda
