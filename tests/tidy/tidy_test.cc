// Walks the project's own tree and fails, with file and line, where the house rules are broken.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <sstream>
#include <string>

#include "test_data.h"
#include "tidy/checking_tests.h"
#include "tidy/function_length.h"
#include "tidy/include_rules.h"
#include "tidy/rules.h"
#include "tidy/thread_labels.h"
#include "tidy/type_rules.h"
#include "tidy/word_rules.h"

namespace pagoda::tidy {
namespace {

namespace fs = std::filesystem;

const fs::path kRoot = source_folder();

// Hidden folders, build folders and what tests read as data.
bool is_exempt(const std::string& folder) {
  const std::string name = fs::path(folder).filename().string();
  return name.starts_with(".") || name.starts_with("build") || folder == "tests/data" ||
         folder == "tests/fuzz/corpus" || folder == "shared";
}

bool is_source(const std::string& path) {
  const std::string_view end = extension(path);
  return end == "h" || end == "cc" || end == "cu" || end == "cuh" || end == "cpp" || end == "hpp";
}

std::string read_text(const fs::path& path) {
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

CMakeTexts read_test_lists() {
  CMakeTexts texts;
  for (const auto& entry : fs::recursive_directory_iterator(kRoot / "tests")) {
    if (entry.path().filename() != "CMakeLists.txt") continue;
    texts.emplace(entry.path().lexically_relative(kRoot).generic_string(), read_text(entry.path()));
  }
  return texts;
}

Sources read_tree() {
  Sources sources;
  for (auto at = fs::recursive_directory_iterator(kRoot); at != fs::recursive_directory_iterator();
       ++at) {
    const std::string path = at->path().lexically_relative(kRoot).generic_string();
    if (at->is_directory() && is_exempt(path)) at.disable_recursion_pending();
    if (!at->is_regular_file() || !is_source(path)) continue;
    sources.emplace(path, read_source(path, read_text(at->path())));
  }
  return sources;
}

const Sources& tree() {
  static const Sources kTree = read_tree();
  return kTree;
}

void expect_none(const std::function<Findings(const SourceText&)>& rule) {
  for (const auto& [path, source] : tree()) {
    for (const Finding& finding : rule(source)) {
      ADD_FAILURE_AT((kRoot / path).c_str(), finding.line) << finding.message;
    }
  }
}

void expect_none(const PlacedFindings& findings) {
  for (const auto& [path, finding] : findings) {
    ADD_FAILURE_AT((kRoot / path).c_str(), finding.line) << finding.message;
  }
}

TEST(TidyTest, TheWalkFindsTheTree) {
  EXPECT_TRUE(tree().contains("src/base/result.h"));
  EXPECT_TRUE(tree().contains("tests/tidy/tidy_test.cc"));
  EXPECT_FALSE(tree().at("src/base/result.h").text.empty());
}

TEST(TidyTest, IncludesFollowTheArrows) { expect_none(wrong_arrows); }

TEST(TidyTest, EveryArrowIsUsed) {
  for (const std::string& arrow : unused_arrows(tree())) {
    ADD_FAILURE() << "nobody uses the permission " << arrow;
  }
}

TEST(TidyTest, CudaReachesNoHostLibrary) {
  expect_none([](const SourceText& source) { return host_libraries_in_cuda(source, tree()); });
}

TEST(TidyTest, FilesAreShort) { expect_none(file_too_long); }

TEST(TidyTest, FunctionsAreShort) { expect_none(functions_too_long); }

TEST(TidyTest, LinesAreShort) { expect_none(lines_too_long); }

TEST(TidyTest, NoStrayBlanks) { expect_none(stray_blanks); }

TEST(TidyTest, HeadersBeginOnce) { expect_none(missing_pragma_once); }

TEST(TidyTest, NamesSaySomething) { expect_none(empty_names); }

TEST(TidyTest, WordsArePlain) { expect_none(metaphors); }

TEST(TidyTest, CommentsNameTheirNoun) { expect_none(nounless_comments); }

TEST(TidyTest, FlagsAreNamedInTheCommandLineAlone) { expect_none(flags_below_the_command_line); }

TEST(TidyTest, ATypeNameIsInOneFolder) { expect_none(types_in_two_folders(tree())); }

TEST(TidyTest, ANameIsInOneSourceOfALibrary) { expect_none(names_in_two_sources(tree())); }

TEST(TidyTest, ClassesAreSmall) { expect_none(classes_too_long(tree())); }

TEST(TidyTest, NothingRunsOnTheLegacyStream) { expect_none(legacy_stream_work); }

TEST(TidyTest, AnswersDependOnNoLibraryMathematics) { expect_none(library_mathematics); }

TEST(TidyTest, NoCodeInComments) { expect_none(commented_out_code); }

TEST(TidyTest, TestsWithThreadsSaySo) {
  expect_none(missing_thread_labels(read_test_lists(), tree()));
}

TEST(TidyTest, TestsCheckSomething) { expect_none(tests_that_check_nothing); }

}  // namespace
}  // namespace pagoda::tidy
