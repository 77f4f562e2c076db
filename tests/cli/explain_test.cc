// pagoda explain where there is no server; tests/server/wire/life_test.py has one.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>

#include "cli/captured_command.h"

namespace pagoda::cli {
namespace {

using testing::HasSubstr;

TEST(Explain, AServerThatIsNotThereIsAnErrorThatNamesIt) {
  const std::string file = testing::TempDir() + "explain_prompt.json";
  std::ofstream(file) << R"({"prompt": "Once"})";
  const Captured run = run_captured({"explain", "http://127.0.0.1:1", "--file", file});
  EXPECT_EQ(run.exit_status, 1);
  EXPECT_THAT(run.err, HasSubstr("http://127.0.0.1:1"));
  EXPECT_EQ(run.out, "");
  std::remove(file.c_str());
}

TEST(Explain, AFileOrAUrlThatIsNoneIsAnErrorThatNamesIt) {
  const Captured file = run_captured({"explain", "http://127.0.0.1:1", "--file", "/nowhere.json"});
  EXPECT_EQ(file.exit_status, 1);
  EXPECT_THAT(file.err, HasSubstr("/nowhere.json: cannot be read"));
  const Captured url = run_captured({"explain", "10.0.0.1:1", "--file", "/nowhere.json"});
  EXPECT_EQ(url.exit_status, 1);
  EXPECT_THAT(url.err, HasSubstr("URL"));
  EXPECT_EQ(run_captured({"explain"}).exit_status, 2);
}

TEST(Explain, HasExamplesInItsHelp) {
  const Captured run = run_captured({"explain", "--help"});
  EXPECT_EQ(run.exit_status, 0);
  EXPECT_THAT(run.out, HasSubstr("pagoda explain http://127.0.0.1:8000 --file prompt.json"));
}

}  // namespace
}  // namespace pagoda::cli
