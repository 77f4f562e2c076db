// pagoda bench perplexity: what a model knows costs it little, and refusals name the numbers.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "bench/bench_command.h"

namespace pagoda::bench {
namespace {

using testing::HasSubstr;

constexpr const char* kStory =
    "Once upon a time, there was a little girl named Lily. She loved to play outside in the park. "
    "One day, she saw a big dog. The dog was very happy and wanted to play with her. Lily said, "
    "\"Hello, dog! Do you want to play?\" The dog ran to her and they played all day. ";

class TextFile {
 public:
  explicit TextFile(const std::string& text)
      : path_(testing::TempDir() + "perplexity-" + std::to_string(::getpid()) + ".txt") {
    std::ofstream(path_) << text;
  }
  ~TextFile() { std::filesystem::remove(path_); }
  TextFile(const TextFile&) = delete;
  TextFile& operator=(const TextFile&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

nlohmann::json row_of(const std::string& text, const std::string& context = "64") {
  const TextFile file(text);
  return bench_json("perplexity", {"--file", file.path(), "--context", context})["rows"][0];
}

std::string words_backwards(const std::string& text) {
  std::istringstream stream(text);
  std::vector<std::string> words;
  for (std::string word; stream >> word;) words.push_back(word);
  std::string result;
  for (auto word = words.rbegin(); word != words.rend(); ++word) result += *word + " ";
  return result;
}

TEST(BenchPerplexity, AStoryHasALowerPerplexityThanItsWordsBackwards) {
  const double forwards = row_of(kStory)["perplexity"];
  const double backwards = row_of(words_backwards(kStory))["perplexity"];
  EXPECT_GT(forwards, 1);
  EXPECT_LT(forwards * 5, backwards);
  EXPECT_LT(backwards, 1e6);
}

TEST(BenchPerplexity, TheSecondHalfOfEachWindowIsScored) {
  std::string text;
  for (int i = 0; i < 4; ++i) text += kStory;
  const nlohmann::json row = row_of(text, "32");
  EXPECT_GT(row["windows"], 2);
  // Of 32 tokens, numbers 17 to 31 follow one of the second half.
  EXPECT_EQ(row["scored_tokens"], row["windows"].get<int>() * 15);
}

TEST(BenchPerplexity, RefusalsNameTheFileAndBothNumbers) {
  const cli::Captured missing = run_bench("perplexity", {"--file", "/nowhere/text"});
  EXPECT_NE(missing.exit_status, 0);
  EXPECT_THAT(missing.err, HasSubstr("/nowhere/text"));
  const TextFile file("Once upon a time");
  const cli::Captured short_text =
      run_bench("perplexity", {"--file", file.path(), "--context", "64"});
  EXPECT_NE(short_text.exit_status, 0);
  EXPECT_THAT(short_text.err, HasSubstr("less than one window of 64"));
  const cli::Captured long_window =
      run_bench("perplexity", {"--file", file.path(), "--context", "4096"});
  EXPECT_NE(long_window.exit_status, 0);
  EXPECT_THAT(long_window.err, HasSubstr("4096"));
}

}  // namespace
}  // namespace pagoda::bench
