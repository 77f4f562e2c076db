#include "tidy/function_length.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace pagoda::tidy {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// "first-last head" of each function found.
std::vector<std::string> functions(const std::string& text) {
  const FunctionList list = list_functions(read_source("a.cc", text));
  EXPECT_TRUE(list.balanced);
  std::vector<std::string> result;
  for (const Function& function : list.functions) {
    result.push_back(std::to_string(function.first_line) + "-" +
                     std::to_string(function.last_line) + " " + function.head);
  }
  return result;
}

std::string body(int lines) {
  std::string text = "void f() {\n";
  for (int i = 0; i < lines - 2; ++i) text += "  g();\n";
  return text + "}\n";
}

TEST(FunctionLengthTest, SeventyLinesPassAndOneMoreDoesNot) {
  EXPECT_THAT(functions_too_long(read_source("a.cc", body(70))), IsEmpty());
  EXPECT_THAT(functions_too_long(read_source("a.cc", "\n" + body(71))),
              ElementsAre(Finding{2, "71 lines, at most 70: void f()"}));
}

TEST(FunctionLengthTest, TheSignatureCountsAndTheCommentAboveDoesNot) {
  EXPECT_THAT(functions("// Why.\ntemplate <class T = int>\nvoid f(int a,\n       int b) {\n}\n"),
              ElementsAre("2-5 template <class T = int> void f(int a, int b)"));
}

TEST(FunctionLengthTest, NamespacesClassesAndInitialisersAreNotFunctions) {
  EXPECT_THAT(
      functions("namespace a::b {\n"
                "enum class E : int { kA };\n"
                "constexpr int kTable[] = {f(1),\n 2};\n"
                "struct alignas(16) Row {\n  int x = 3;\n  int y{4};\n};\n"
                "class Pool final : public Thing {\n"
                " public:\n"
                "  int size() const { return 1; }\n"
                " private:\n"
                "  int size_ = 0;\n"
                "};\n"
                "extern \"C\" {\nint c(void) { return 0; }\n}\n"
                "namespace {\nstruct Point make() { return {}; }\n}\n"
                "}\n"),
      ElementsAre("11-11 int size() const", "16-16 int c(void)", "19-19 struct Point make()"));
}

TEST(FunctionLengthTest, InitialiserListsBelongToTheSignature) {
  EXPECT_THAT(functions("Pool::Pool(int a)\n    : a_{a},\n      b_(2),\n      c_{3} {\n  go();\n}\n"
                        "int next() { return 1; }\n"),
              ElementsAre("1-6 Pool::Pool(int a) : a_", "7-7 int next()"));
}

TEST(FunctionLengthTest, OperatorsAndLambdasAreFunctions) {
  EXPECT_THAT(functions("bool operator==(A a, A b) {\n  return true;\n}\n"
                        "const auto kSquare = [](int x) {\n  return x * x;\n};\n"
                        "TEST(Suite, Name) {\n  const auto f = [] { return 1; };\n}\n"),
              ElementsAre("1-3 bool operator==(A a, A b)", "4-6 const auto kSquare = [](int x)",
                          "7-9 TEST(Suite, Name)"));
}

TEST(FunctionLengthTest, ArgumentsInBracesAreNotFunctions) {
  EXPECT_THAT(functions("INSTANTIATE(Some, Test, Values(Case{1},\n Case{2},\n Case{3}));\n"),
              IsEmpty());
}

TEST(FunctionLengthTest, BracesInLiteralsCommentsAndMacrosDoNotCount) {
  EXPECT_THAT(functions("#define OPEN \\\n  { \\\n  {\n"
                        "void f() {\n  g(\"}\", '}', R\"(}}})\");  // }\n  /* } */\n}\n"),
              ElementsAre("4-7 void f()"));
}

TEST(FunctionLengthTest, BranchesOfThePreprocessorStartAlike) {
  EXPECT_THAT(functions("#ifdef A\nvoid f(int a) {\n#else\nvoid f() {\n#endif\n  g();\n}\n"),
              ElementsAre("4-7 void f()"));
}

TEST(FunctionLengthTest, UnbalancedBracesAreReported) {
  EXPECT_EQ(functions_too_long(read_source("a.cc", "void f() {\n")).size(), 1U);
  EXPECT_EQ(functions_too_long(read_source("a.cc", "}\n")).size(), 1U);
}

}  // namespace
}  // namespace pagoda::tidy
