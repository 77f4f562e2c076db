#include "tidy/checking_tests.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace pagoda::tidy {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

Findings found(const std::string& text) {
  return tests_that_check_nothing(read_source("tests/a_test.cc", text));
}

TEST(CheckingTestsTest, ATestWithoutACheckIsFound) {
  EXPECT_THAT(found("TEST(A, B) { go(); }\nTEST_F(A, C) {\n  go();\n}\nTEST_P(A, D) {}\n"),
              ElementsAre(Finding{1, "checks nothing: TEST(A, B)"},
                          Finding{2, "checks nothing: TEST_F(A, C)"},
                          Finding{5, "checks nothing: TEST_P(A, D)"}));
  EXPECT_THAT(found("TYPED_TEST(A, B) {\n  // EXPECT_EQ(1, 1)\n  go(\"ASSERT_TRUE\");\n}\n"),
              ElementsAre(Finding{1, "checks nothing: TYPED_TEST(A, B)"}));
}

TEST(CheckingTestsTest, EveryKindOfCheckCounts) {
  for (const char* const check :
       {"EXPECT_EQ(a, b);", "ASSERT_TRUE(a);", "FAIL() << 1;", "ADD_FAILURE();", "expect_same(a);",
        "EXPECT_DEATH(f(), \"\");"}) {
    EXPECT_THAT(found("TEST(A, B) {\n  " + std::string(check) + "\n}\n"), IsEmpty()) << check;
  }
}

TEST(CheckingTestsTest, ACheckMayBeInAFunctionOfTheFileAlsoFarther) {
  const std::string functions =
      "template <class T>\nvoid outer() {\n  inner(T());\n}\nvoid inner(int a) { EXPECT_EQ(a, 1); "
      "}\n"
      "void idle() {}\n";
  EXPECT_THAT(found(functions + "TEST(A, B) { outer<int>(); }\n"), IsEmpty());
  EXPECT_THAT(found(functions + "TEST(A, B) { idle(); }\n"),
              ElementsAre(Finding{7, "checks nothing: TEST(A, B)"}));
}

TEST(CheckingTestsTest, OtherFunctionsNeedNoCheck) {
  EXPECT_THAT(found("void f() { go(); }\nclass Fixture {\n  void SetUp() { go(); }\n};\n"),
              IsEmpty());
}

}  // namespace
}  // namespace pagoda::tidy
