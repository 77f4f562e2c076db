#include "tidy/thread_labels.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace pagoda::tidy {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

PlacedFindings findings_of(const std::string& list,
                           const std::map<std::string, std::string>& texts) {
  Sources sources;
  for (const auto& [path, text] : texts) sources.emplace(path, read_source(path, text));
  return missing_thread_labels({{"tests/a/CMakeLists.txt", list}}, sources);
}

TEST(ThreadLabelsTest, AProgramThatStartsThreadsHasTheLabel) {
  for (const char* what : {"std::thread t(f);", "std::jthread t;", "auto a = std::async(f);",
                           "ThreadPool pool(2);", "auto c = kv::memory_copier(3);"}) {
    const std::map<std::string, std::string> texts = {{"tests/a/x_test.cc", what}};
    EXPECT_EQ(findings_of("\npagoda_test(x_test\n  SOURCES x_test.cc)\n", texts).size(), 1) << what;
    EXPECT_THAT(findings_of("pagoda_test(x_test SOURCES x_test.cc LABELS slow threads)", texts),
                IsEmpty());
    EXPECT_THAT(findings_of("pagoda_test(x_test SOURCES x_test.cc LABELS gpu)", texts), IsEmpty());
  }
}

TEST(ThreadLabelsTest, NamesInCommentsAndOtherWordsAreNone) {
  EXPECT_THAT(
      findings_of("pagoda_test(x_test SOURCES x_test.cc DEPS ThreadPool)",
                  {{"tests/a/x_test.cc",
                    "// std::thread\nstd::thread_ids i; ThreadPools p;\nf(\"ThreadPool\");"}}),
      IsEmpty());
}

TEST(ThreadLabelsTest, SourcesOfOtherFoldersAndWhatIsIncludedCount) {
  const std::string list = "pagoda_test(x_test SOURCES ../b/y.cc LABELS slow)";
  EXPECT_THAT(findings_of(list, {{"tests/b/y.cc", "ThreadPool p(1);"}}),
              ElementsAre(PlacedFinding{
                  "tests/a/CMakeLists.txt",
                  {1, "x_test lacks the label threads: tests/b/y.cc names ThreadPool"}}));
  EXPECT_EQ(findings_of(list, {{"tests/b/y.cc", "#include \"b/model.h\"\n"},
                               {"tests/b/model.h", "int f();"},
                               {"tests/b/model.cc", "int f() { ThreadPool p(1); }"}})
                .size(),
            1);
  EXPECT_EQ(findings_of(list, {{"tests/b/y.cc", "#include \"store/s.h\"\n"},
                               {"src/store/s.h", "class S { std::thread thread_; };"}})
                .size(),
            1);
  // Headers of src/ whose classes own no thread start none.
  EXPECT_THAT(findings_of(list, {{"tests/b/y.cc", "#include \"model/decoder.h\"\n"},
                                 {"src/model/decoder.h", "int f(ThreadPool& pool);"}}),
              IsEmpty());
}

}  // namespace
}  // namespace pagoda::tidy
