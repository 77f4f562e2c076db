// The rules can fail: each has a sample that passes and one that does not.
#include "tidy/rules.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace pagoda::tidy {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

SourceText sample(std::string text, std::string path = "src/base/sample.cc") {
  return read_source(std::move(path), std::move(text));
}

std::string repeated(const std::string& part, int times) {
  std::string text;
  for (int i = 0; i < times; ++i) text += part;
  return text;
}

MATCHER_P(OnLine, line, "") { return arg.line == line; }

TEST(SourceTextTest, ViewsKeepTheirPlaces) {
  const SourceText source = sample("int a = 1; // b\nf(\"x\\\"{\", '\\'', 1'000); /* { */ g();\n");
  EXPECT_EQ(source.code, "int a = 1;     \nf(\"    \", '  ', 1'000);         g();\n");
  EXPECT_EQ(source.literals, "int a = 1;     \nf(\"x\\\"{\", '\\'', 1'000);         g();\n");
  EXPECT_EQ(trimmed(split_lines(source.comments)[0]), "// b");
  EXPECT_EQ(trimmed(split_lines(source.comments)[1]), "/* { */");
}

TEST(SourceTextTest, RawStringsEndWithTheirTag) {
  const SourceText source = sample("auto x = R\"t(a\" // {\n)\" {)t\"; y();\n");
  EXPECT_EQ(split_lines(source.code)[0], "auto x = R\"         ");
  EXPECT_EQ(split_lines(source.code)[1], "      \"; y();");
  EXPECT_THAT(trimmed(source.comments), IsEmpty());
}

TEST(SourceTextTest, ANameThatEndsInRIsNoRawString) {
  EXPECT_EQ(sample("COLOR\"(\"; a();\n").code, "COLOR\" \"; a();\n");
}

TEST(RulesTest, FilesHave500LinesAtMostAndCuda600) {
  EXPECT_THAT(file_too_long(sample(repeated("\n", 500))), IsEmpty());
  EXPECT_THAT(file_too_long(sample(repeated("\n", 501))), ElementsAre(OnLine(501)));
  EXPECT_THAT(file_too_long(sample(repeated("\n", 600), "src/kernels/a.cu")), IsEmpty());
  EXPECT_THAT(file_too_long(sample(repeated("\n", 601), "src/kernels/a.cu")),
              ElementsAre(Finding{601, "601 lines, at most 600"}));
}

TEST(RulesTest, LinesHave100CodePointsAtMost) {
  EXPECT_THAT(lines_too_long(sample(repeated("x", 100) + "\n")), IsEmpty());
  EXPECT_THAT(lines_too_long(sample(repeated("\u00e9", 100) + "\n")), IsEmpty());
  EXPECT_THAT(lines_too_long(sample("\n" + repeated("x", 101))),
              ElementsAre(Finding{2, "101 columns, at most 100"}));
}

TEST(RulesTest, NoTabsNorBlanksAtTheEnd) {
  EXPECT_THAT(stray_blanks(sample("int a;\n\n  int b;\n")), IsEmpty());
  EXPECT_THAT(stray_blanks(sample("\tint a;\nint b; \n\n \nint c;\r\n")),
              ElementsAre(OnLine(1), OnLine(2), OnLine(4), OnLine(5)));
}

TEST(RulesTest, HeadersBeginOnce) {
  EXPECT_THAT(missing_pragma_once(sample("// Why.\n#pragma once\n", "a.h")), IsEmpty());
  EXPECT_THAT(missing_pragma_once(sample("int a;\n", "a.cc")), IsEmpty());
  EXPECT_THAT(missing_pragma_once(sample("// #pragma once\n", "a.h")), ElementsAre(OnLine(1)));
  EXPECT_THAT(missing_pragma_once(sample("int a;\n", "a.cuh")), ElementsAre(OnLine(1)));
}

TEST(RulesTest, NamesSaySomething) {
  EXPECT_THAT(empty_names(sample("#include <sys/common.h>\n"
                                 "double gpu_memory_utilization;  // a helper\n"
                                 "std::common_type_t<int> commonly(\"misc\");\n"
                                 "class Baseline;\n"
                                 "struct Base64Text;\n")),
              IsEmpty());
  EXPECT_THAT(empty_names(sample("class BlockManager;\n"
                                 "int string_utils = 0;\n"
                                 "void miscCounter();\n"
                                 "constexpr int kHelperCount = 1;\n"
                                 "class BasePool {};\n"
                                 "struct Base {};\n")),
              ElementsAre(OnLine(1), OnLine(2), OnLine(3), OnLine(4), OnLine(5), OnLine(6)));
  EXPECT_THAT(empty_names(sample("", "src/base/string_util.cc")), ElementsAre(OnLine(1)));
  EXPECT_THAT(empty_names(sample("", "src/common/text.cc")), ElementsAre(OnLine(1)));
}

TEST(RulesTest, ProseIsNotCode) {
  EXPECT_THAT(commented_out_code(sample("// Frees the block; see free().\n"
                                        "// The state is kept (see above);\n"
                                        "// released: reusable until evicted;\n"
                                        "// the result is x = 3;\n"
                                        "// A block is: {\n"
                                        "//   pool.release(id);\n"
                                        "int a = 1;  // for (i) of it, a = b\n"
                                        "// if the block (a) is empty {\n"
                                        "// sum = a + b, left to right\n")),
              IsEmpty());
}

TEST(RulesTest, CodeIsNotKeptInComments) {
  EXPECT_THAT(commented_out_code(sample("// pool.release(id);\n"
                                        "//pool->check();\n"
                                        "  // return blocks_free;\n"
                                        "// if (a < b) {\n"
                                        "// const int x = f(3);\n"
                                        "// x += 3;\n"
                                        "// #include <vector>\n"
                                        "#if 0\n"
                                        "#endif\n"
                                        "// std::sort(a.begin(), a.end());\n")),
              ElementsAre(OnLine(1), OnLine(2), OnLine(3), OnLine(4), OnLine(5), OnLine(6),
                          OnLine(7), OnLine(8), OnLine(10)));
}

TEST(LegacyStreamTest, SynchronousCopiesAndBareLaunchesAreFound) {
  EXPECT_THAT(legacy_stream_work(sample("cudaMemset(p, 0, n);\nx = cudaMemcpy2D (a, b);\n")),
              ElementsAre(OnLine(1), OnLine(2)));
  EXPECT_THAT(legacy_stream_work(sample("kernel<<<grid, block>>>(x);\n", "src/kernels/a.cu")),
              ElementsAre(OnLine(1)));
  EXPECT_THAT(legacy_stream_work(sample("cudaMemsetAsync(p, 0, n, s);\n// cudaMemset(p)\n"
                                        "copy(cudaMemcpyDefault);\n")),
              IsEmpty());
}

TEST(RulesTest, WhatComputesAnswersCallsNoMathematicsOfTheLibrary) {
  const std::string code =
      "x = std::sqrt(y) + catalog.log(z);\nreturn std::pow(x, 2) * std::fma(a, b, c);\n";
  for (const char* const path : {"src/model/a.cc", "src/kernels/ref/a.cc", "src/engine/a.h",
                                 "src/gguf/quantise.cc", "src/hf/a.cc"}) {
    EXPECT_THAT(library_mathematics(sample(code, path)), ElementsAre(OnLine(2))) << path;
  }
  for (const char* const path :
       {"src/cli/a.cc", "tests/model/a.cc", "src/kernels/cuda/reference.cc"}) {
    EXPECT_THAT(library_mathematics(sample(code, path)), IsEmpty()) << path;
  }
}

TEST(RulesTest, MathematicsIsFoundByEveryName) {
  const std::string called = "src/model/a.cc";
  for (const char* const code :
       {"x = expf(y);", "x = ::pow(y, 2);", "return logf(y);", "x = 2 * log(y);", "x = -sinl (y);",
        "f(std::expf);", "using std::pow;", "a[exp2(1)] = 0;", "if (a) x = y; else cosf(z);"}) {
    EXPECT_THAT(library_mathematics(sample(code, called)), ElementsAre(OnLine(1))) << code;
  }
  for (const char* const code :
       {"const Log* log() const;", "static float exp2(float x);", "x = device::exp2(y);",
        "x = a.log(y) + b->pow(z, 2);", "x = Type<int>::log(y);", "int log = 3;",
        "expire(1); sinf_fixed(x);", "bool logl;"}) {
    EXPECT_THAT(library_mathematics(sample(code, called)), IsEmpty()) << code;
  }
  // A GPU has functions of its own by these names.
  EXPECT_THAT(library_mathematics(sample("x = expf(y);", "src/kernels/cuda/a.cu")), IsEmpty());
  EXPECT_THAT(library_mathematics(sample("x = std::exp(y);", "src/kernels/cuda/a.cu")),
              ElementsAre(OnLine(1)));
}

}  // namespace
}  // namespace pagoda::tidy
