// pagoda tokenize, through its command line, on a file that holds a vocabulary only.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>

#include "cli/captured_command.h"
#include "test_data.h"

namespace pagoda::cli {
namespace {

using testing::HasSubstr;

Captured tokenize(std::vector<std::string> more) {
  std::vector<std::string> words = {"tokenize", test_data() + "/vocab/ggml-vocab-gpt-2.gguf"};
  words.insert(words.end(), more.begin(), more.end());
  return run_captured(words);
}

// "Hello world" is 15496 995 in GPT-2's published vocabulary; <|endoftext|> is 50256.
TEST(Tokenize, ATextWithoutAModelIsToldWhereItStands) {
  const Captured alone = run_captured({"tokenize", "Hello"});
  EXPECT_EQ(alone.exit_status, 1);
  EXPECT_NE(alone.err.find("pagoda tokenize MODEL TEXT"), std::string::npos) << alone.err;
  EXPECT_EQ(alone.err.find("pagoda pull Hello"), std::string::npos) << alone.err;
}

TEST(Tokenize, PrintsIdsOnOneLine) {
  const Captured ids = tokenize({"Hello world"});
  EXPECT_EQ(ids.exit_status, 0) << ids.err;
  EXPECT_EQ(ids.out, "15496 995\n");
}

TEST(Tokenize, TheModelMayStandBehindItsFlag) {
  const std::string model = test_data() + "/vocab/ggml-vocab-gpt-2.gguf";
  EXPECT_EQ(run_captured({"tokenize", "-m", model, "Hello world"}).out, "15496 995\n");
  EXPECT_EQ(run_captured({"tokenize", "--model", model, "Hello world"}).out, "15496 995\n");
}

TEST(Tokenize, SpecialTokensAreRecognisedOnlyWhenAsked) {
  EXPECT_EQ(tokenize({"<|endoftext|>", "--special"}).out, "50256\n");
  EXPECT_THAT(tokenize({"<|endoftext|>"}).out, testing::Not(HasSubstr("50256")));
}

// Exactly the text: a pipe through tokenize and back is the identity.
TEST(Tokenize, ReadsFilesAndGoesBack) {
  const std::string path = testing::TempDir() + "pagoda_tokenize_test.txt";
  std::ofstream(path) << "Hello world";
  EXPECT_EQ(tokenize({"--file", path}).out, "15496 995\n");
  std::ofstream(path) << "15496 995";
  EXPECT_EQ(tokenize({"--detokenize", "--file", path}).out, "Hello world");
  EXPECT_EQ(tokenize({"--detokenize", "15496 995"}).out, "Hello world");
}

TEST(Tokenize, PiecesStandOneALine) {
  const Captured pieces = tokenize({"--pieces", "Hello world"});
  EXPECT_THAT(pieces.out, testing::MatchesRegex(" *15496  'Hello'\n *995  ' world'\n"));
}

TEST(Tokenize, JsonIsOneValue) {
  const Captured ids = tokenize({"--json", "Hello world"});
  EXPECT_TRUE(nlohmann::json::accept(ids.out)) << ids.out;
  EXPECT_THAT(ids.out, HasSubstr("15496"));
}

// GPT-2 has one special token; the template writes it, the user types it.
TEST(Tokenize, AConversationGoesThroughAChatTemplate) {
  const std::string path = testing::TempDir() + "pagoda_tokenize_test.jinja";
  std::ofstream(path) << "{% for m in messages %}{{ m.content + eos_token }}{% endfor %}";
  const std::string messages = R"([{"role": "user", "content": "Hello world"}])";
  EXPECT_EQ(tokenize({"--chat", "--chat-template", path, messages}).out, "15496 995 50256\n");
  EXPECT_THAT(tokenize({"--chat", "--chat-template", path, "--pieces", messages}).out,
              testing::MatchesRegex(" *15496  user +'Hello'\n *995  user +' world'\n"
                                    " *50256  template +'<.endoftext.>'\n"));
  const std::string typed = R"({"messages": [{"role": "user", "content": "<|endoftext|>"}]})";
  const auto json =
      nlohmann::json::parse(tokenize({"--chat", "--chat-template", path, "--json", typed}).out);
  EXPECT_EQ(std::count(json["ids"].begin(), json["ids"].end(), 50256), 1);
  EXPECT_EQ(json["ids"].back(), 50256);
  EXPECT_EQ(json["sources"].size(), json["ids"].size());
}

TEST(Tokenize, BadConversationsAreNamed) {
  EXPECT_THAT(tokenize({"--chat", "[]"}).err, HasSubstr("no chat template"));
  EXPECT_THAT(tokenize({"--chat", "["}).err, HasSubstr("not JSON"));
  EXPECT_THAT(tokenize({"--chat", R"({"message": []})"}).err, HasSubstr("unknown key 'message'"));
  EXPECT_THAT(tokenize({"--chat", "--chat-template", "/no/such/file", "[]"}).err,
              HasSubstr("/no/such/file"));
  EXPECT_EQ(tokenize({"--chat-template", "x", "[]"}).exit_status, 2);
}

TEST(Tokenize, BadInputIsNamed) {
  EXPECT_NE(tokenize({"--detokenize", "15496 twelve"}).exit_status, 0);
  EXPECT_THAT(tokenize({"--detokenize", "15496 twelve"}).err, HasSubstr("twelve"));
  EXPECT_THAT(tokenize({"--detokenize", "999999"}).err, HasSubstr("999999"));
  EXPECT_THAT(tokenize({"--file", "/no/such/file"}).err, HasSubstr("/no/such/file"));
}

}  // namespace
}  // namespace pagoda::cli
