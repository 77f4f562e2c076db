#include <gtest/gtest.h>

#include <cstdio>
#include <fstream>
#include <iostream>
#include <sstream>

#include "cli/captured_command.h"
#include "default_model.h"
#include "test_data.h"

namespace pagoda::cli {
namespace {

TEST(Chat, AnswersOneQuestionAndSaysWhatItCost) {
  REQUIRE_DEFAULT_MODEL();
  const Captured run =
      run_captured({"chat", "-p", "What is the capital of France?", "--temp", "0", "-n", "20"});
  EXPECT_EQ(run.exit_status, 0);
  EXPECT_NE(run.out.find("Paris"), std::string::npos) << run.out;
  EXPECT_NE(run.err.find("prompt 37 tokens, 0 cached"), std::string::npos) << run.err;
}

TEST(Chat, AModelWithoutATemplateIsRefused) {
  const Captured run =
      run_captured({"chat", "-m", test_data() + "/models/stories260K.gguf", "-p", "Hello"});
  EXPECT_EQ(run.exit_status, 1);
  EXPECT_NE(run.err.find(": --chat-template names a file with one; \"pagoda run\" completes"),
            std::string::npos)
      << run.err;
}

TEST(Chat, ItsCommandsAreListedAndEnd) {
  const std::string file = testing::TempDir() + "chat_commands.jinja";
  std::ofstream(file) << "{{ messages[-1].content }}";
  std::istringstream typed("/help\n/fly\n/bye\nOnce\n");
  std::streambuf* const before = std::cin.rdbuf(typed.rdbuf());
  const Captured run = run_captured(
      {"chat", "-m", test_data() + "/models/stories260K.gguf", "--chat-template", file});
  std::cin.rdbuf(before);
  std::remove(file.c_str());
  EXPECT_EQ(run.exit_status, 0) << run.err;
  EXPECT_NE(run.err.find("/reset       forget the conversation\n"), std::string::npos) << run.err;
  EXPECT_NE(run.err.find("\"/fly\" is no command; /help lists them"), std::string::npos) << run.err;
  EXPECT_EQ(run.out, "") << "nothing is asked behind /bye";
}

TEST(Chat, AUrlThatIsNoneIsRefusedByName) {
  for (const char* const url :
       {"elsewhere:8000", "ftp://localhost", "http://", "https://", "http://:80"}) {
    const Captured run = run_captured({"chat", "--url", url, "-p", "Hello"});
    EXPECT_EQ(run.exit_status, 1);
    EXPECT_NE(run.err.find("--url"), std::string::npos) << run.err;
  }
}

TEST(Chat, AServerThatIsNotThereIsAnError) {
  const Captured run = run_captured({"chat", "--url", "http://127.0.0.1:1", "-p", "Hello"});
  EXPECT_EQ(run.exit_status, 1);
  EXPECT_EQ(run.err, "error: http://127.0.0.1:1: Connection refused\n");
  EXPECT_EQ(run.out, "");
}

}  // namespace
}  // namespace pagoda::cli
