#include "tidy/include_rules.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace pagoda::tidy {
namespace {

using ::testing::Contains;
using ::testing::IsEmpty;
using ::testing::Not;

Findings arrows(const std::string& path, const std::string& include) {
  return wrong_arrows(read_source(path, "#include \"" + include + "\"\n"));
}

TEST(IncludeRulesTest, IncludesAreReadOutsideCommentsAndStrings) {
  const SourceText source = read_source("src/base/a.cc",
                                        "#include <vector>\n"
                                        "  #  include \"base/a.h\"  // why\n"
                                        "// #include \"base/b.h\"\n"
                                        "const char* c = \"#include <d>\";\n");
  const std::vector<Include> includes = list_includes(source);
  ASSERT_EQ(includes.size(), 2U);
  EXPECT_EQ(includes[0].path, "vector");
  EXPECT_FALSE(includes[0].quoted);
  EXPECT_EQ(includes[1].path, "base/a.h");
  EXPECT_EQ(includes[1].line, 2);
  EXPECT_TRUE(includes[1].quoted);
}

TEST(IncludeRulesTest, ArrowsOfTheTablePass) {
  EXPECT_THAT(arrows("src/base/a.cc", "base/b.h"), IsEmpty());
  EXPECT_THAT(arrows("src/kv/blocks/a.cc", "kv/memory/view.h"), IsEmpty());
  EXPECT_THAT(arrows("src/kv/memory/a.cc", "kv/ids.h"), IsEmpty());
  EXPECT_THAT(arrows("src/kv/memory/a.cc", "kv/memory/view.h"), IsEmpty());
  EXPECT_THAT(arrows("src/kernels/ref/a.cc", "gguf/tensor_type.h"), IsEmpty());
  EXPECT_THAT(arrows("src/model/a.cc", "kernels/ops.h"), IsEmpty());
  EXPECT_THAT(arrows("src/engine/backends/a.cc", "device/device.h"), IsEmpty());
  EXPECT_THAT(arrows("src/server/a.cc", "engine/reply.h"), IsEmpty());
  EXPECT_THAT(arrows("src/cli/size.cc", "gguf/file.h"), IsEmpty());
  EXPECT_THAT(arrows("src/cli/bench_batch.cc", "bench/benchmarks.h"), IsEmpty());
  EXPECT_THAT(arrows("src/bench/a.cc", "app/loaded_model.h"), IsEmpty());
  EXPECT_THAT(arrows("src/replay/a.cc", "kv/cache.h"), IsEmpty());
  EXPECT_THAT(arrows("tests/kv/a_test.cc", "server/http.h"), IsEmpty());
}

TEST(IncludeRulesTest, OtherArrowsFail) {
  EXPECT_EQ(arrows("src/base/a.cc", "kv/ids.h"),
            (Findings{{1, "base/ may not include \"kv/ids.h\", only nothing else"}}));
  EXPECT_EQ(arrows("src/kv/memory/a.cc", "kv/prefix/tree.h").size(), 1U);
  EXPECT_EQ(arrows("src/kv/prefix/a.cc", "store/slab.h").size(), 1U);
  EXPECT_EQ(arrows("src/kernels/a.cc", "gguf/file.h").size(), 1U);
  EXPECT_EQ(arrows("src/kernels/a.cc", "kv/ids.h").size(), 1U);
  EXPECT_EQ(arrows("src/kernels/ref/a.cc", "device/device.h").size(), 1U);
  EXPECT_EQ(arrows("src/model/a.cc", "kernels/select.h").size(), 1U);
  EXPECT_EQ(arrows("src/engine/a.cc", "device/device.h").size(), 1U);
  EXPECT_EQ(arrows("src/sched/a.cc", "engine/engine.h").size(), 1U);
  EXPECT_EQ(arrows("src/server/a.cc", "engine/batch.h").size(), 1U);
  EXPECT_EQ(arrows("src/replay/a.cc", "model/decoder.h").size(), 1U);
  EXPECT_EQ(arrows("src/app/a.cc", "cli/flags.h").size(), 1U);
  EXPECT_EQ(arrows("src/bench/a.cc", "serve/serve.h").size(), 1U);
  EXPECT_EQ(arrows("src/loadgen/a.cc", "app/loaded_model.h").size(), 1U);
  EXPECT_EQ(arrows("src/process/a.cc", "terminal/messages.h").size(), 1U);
  EXPECT_EQ(arrows("src/serve/a.cc", "cli/flags.h").size(), 1U);
}

TEST(IncludeRulesTest, TheFlagLibraryIsIncludedWhereFlagsAreMade) {
  EXPECT_THAT(wrong_arrows(read_source("src/cli/flags.cc", "#include <CLI/CLI.hpp>\n")), IsEmpty());
  EXPECT_EQ(wrong_arrows(read_source("src/cli/run.cc", "#include <CLI/CLI.hpp>\n")).size(), 1U);
}

TEST(IncludeRulesTest, IncludesArePathsFromSrcInQuotes) {
  EXPECT_EQ(arrows("src/base/a.cc", "a.h"), (Findings{{1, "\"a.h\" is not a path from src/"}}));
  EXPECT_EQ(arrows("src/base/a.cc", "../kv/ids.h").size(), 1U);
  EXPECT_EQ(wrong_arrows(read_source("src/kv/a.cc", "#include <gguf/file.h>\n")).size(), 1U);
}

TEST(IncludeRulesTest, FilesAreInAKnownFolder) {
  EXPECT_EQ(wrong_arrows(read_source("src/main.cc", "")).size(), 1U);
  EXPECT_EQ(wrong_arrows(read_source("src/network/a.cc", "")).size(), 1U);
  EXPECT_EQ(wrong_arrows(read_source("extra/a.cc", "")).size(), 1U);
  EXPECT_THAT(wrong_arrows(read_source("src/store/a.cc", "")), IsEmpty());
}

TEST(IncludeRulesTest, APermissionThatNobodyUsesIsFound) {
  Sources sources;
  const auto add = [&](const std::string& path, const std::string& text) {
    sources[path] = read_source(path, text);
  };
  add("src/kernels/a.cc", "#include \"gguf/tensor_type.h\"\n#include <base/result.h>\n");
  add("tests/gguf/a.cc", "#include \"base/result.h\"\n");
  add("src/kv/memory/a.cc", "#include \"base/result.h\"\n#include \"kv/ids.h\"\n");
  const std::vector<std::string> unused = unused_arrows(sources);
  EXPECT_THAT(unused, Not(Contains("kernels/ -> gguf/tensor_type.h")));
  EXPECT_THAT(unused, Not(Contains("kv/memory/ -> kv/ids.h")));
  EXPECT_THAT(unused, Contains("kernels/ -> base/"));
  EXPECT_THAT(unused, Contains("gguf/ -> base/"));
  EXPECT_THAT(unused, Contains("kv/ -> base/"));
}

TEST(IncludeRulesTest, CudaFilesReachNoHostLibrary) {
  Sources sources;
  const auto add = [&](const std::string& path, const std::string& text) {
    sources[path] = read_source(path, text);
  };
  add("src/base/plain.h", "#include <vector>\n#include \"base/loop.h\"\n");
  add("src/base/loop.h", "#include \"base/plain.h\"\n");
  add("src/base/printing.h", "#include \"base/fancy.h\"\n");
  add("src/base/fancy.h", "#include <fmt/format.h>\n");
  const SourceText good = read_source("src/kernels/a.cu", "#include \"base/plain.h\"\n");
  EXPECT_THAT(host_libraries_in_cuda(good, sources), IsEmpty());

  const std::string text = "#include \"base/plain.h\"\n#include \"base/printing.h\"\n";
  EXPECT_EQ(host_libraries_in_cuda(read_source("src/kernels/a.cu", text), sources),
            (Findings{{2, "src/kernels/a.cu -> base/printing.h -> base/fancy.h -> fmt/format.h"}}));
  EXPECT_EQ(host_libraries_in_cuda(read_source("src/kernels/a.cuh", text), sources).size(), 1U);
  EXPECT_THAT(host_libraries_in_cuda(read_source("src/kernels/a.cc", text), sources), IsEmpty());
  EXPECT_EQ(host_libraries_in_cuda(read_source("src/kernels/b.cu", "#include <boost/asio.hpp>\n"),
                                   sources)
                .size(),
            1U);
}

}  // namespace
}  // namespace pagoda::tidy
