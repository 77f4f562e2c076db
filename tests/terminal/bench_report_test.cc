#include "terminal/bench_report.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "terminal/json_text.h"

namespace pagoda::terminal {
namespace {

TEST(BenchMachine, CpusAreNamedAsTheKernelSaysOrByTheirPartNumber) {
  EXPECT_EQ(cpu_name("processor\t: 0\nmodel\t\t: 85\nmodel name\t: Some CPU @ 2.50GHz\n"),
            "Some CPU @ 2.50GHz");
  const std::string arm =
      "processor\t: 0\nCPU implementer\t: 0x41\nCPU variant\t: 0x1\nCPU part\t: ";
  EXPECT_EQ(cpu_name(arm + "0xd40\n"), "Neoverse-V1");
  EXPECT_EQ(cpu_name(arm + "0xfff\n"), "implementer 0x41 part 0xfff");
  EXPECT_EQ(cpu_name("CPU implementer\t: 0x61\nCPU part\t: 0xd40\n"),
            "implementer 0x61 part 0xd40");
  EXPECT_EQ(cpu_name(""), "unknown");
}

TEST(BenchReport, ATableAndItsJsonSayTheSame) {
  BenchReport report("made up", {{"name", "name"}, {"count", "count"}, {"ms", "ms", 1}});
  report.add_setting("prompt_tokens", 12);
  report.add_row({"a long name", 1234567, 1.25});
  report.add_row({"b", nullptr, 100.0});
  report.add_figure("speedup", 2.5, "2.5x");
  const BenchMachine machine = {"Some CPU", 3, "arch", "ref 1", "build"};
  EXPECT_EQ(report.text(machine, "pagoda bench it"),
            "command   pagoda bench it\n"
            "machine   3 x Some CPU (arch), kernels ref 1, build\n"
            "settings  prompt tokens 12\n"
            "\n"
            "name             count     ms\n"
            "a long name  1,234,567    1.2\n"
            "b                    -  100.0\n"
            "\n"
            "2.5x\n");
  EXPECT_EQ(report.json(machine, "pagoda bench it"), nlohmann::ordered_json::parse(R"({
    "benchmark": "made up",
    "machine": {"cpu": "Some CPU", "cores": 3, "architecture": "arch", "kernels": "ref 1",
                "build": "build"},
    "command": "pagoda bench it",
    "settings": {"prompt_tokens": 12},
    "speedup": 2.5,
    "rows": [{"name": "a long name", "count": 1234567, "ms": 1.25},
             {"name": "b", "count": null, "ms": 100.0}]})"));
}

TEST(BenchReport, ValuesOfEveryTypeAreJson) {
  BenchReport report("types", {{"a", "a"}});
  report.add_detail("null", nullptr);
  report.add_detail("yes", true);
  report.add_detail("signed", -1);
  report.add_detail("large", UINT64_MAX);
  report.add_detail("text", std::string_view("t"));
  report.add_detail("texts", std::vector<std::string>{"a", "b"});
  report.add_detail("json", nlohmann::ordered_json{{"z", 1}, {"a", 2}});
  report.add_detail("yes", false);
  nlohmann::ordered_json json = report.json({}, "");
  for (const char* const key : {"benchmark", "machine", "command", "settings", "rows"}) {
    json.erase(key);
  }
  EXPECT_EQ(json_text(json, -1),
            R"({"null":null,"yes":false,"signed":-1,"large":18446744073709551615,"text":"t",)"
            R"("texts":["a","b"],"json":{"z":1,"a":2}})");
}

TEST(JsonText, BytesThatAreNoUtf8AreReplaced) {
  EXPECT_EQ(json_text(nlohmann::ordered_json("a\xff"), -1), "\"a\xEF\xBF\xBD\"");
  EXPECT_EQ(json_text(nlohmann::ordered_json{{"a", 1}}), "{\n  \"a\": 1\n}");
}

}  // namespace
}  // namespace pagoda::terminal
