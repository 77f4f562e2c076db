// pagoda bench peer: what other programs are asked, what is understood of their output, and what
// comes of those that fail. The programs are small scripts in place of llama.cpp's.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <map>
#include <vector>

#include "bench/bench_command.h"
#include "bench/peer_program.h"
#include "bench/ratio_interval.h"
#include "bench/work.h"
#include "kernels/select.h"
#include "test_data.h"

namespace pagoda::bench {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

const Work& work_named(std::string_view name) {
  for (const Work& work : compared_works()) {
    if (work.name == name) return work;
  }
  ADD_FAILURE() << name;
  return compared_works().front();
}

// Reads its arguments into $p, $n, $d, $m and the like, as llama.cpp's programs have them.
constexpr const char* kReadArguments =
    "#!/bin/sh\n"
    "while [ $# -gt 1 ]; do\n"
    "  case $1 in\n"
    "    -m) m=$2 ;; -p) p=$2 ;; -n) n=$2 ;; -d) d=$2 ;; -npp) npp=$2 ;; -ntg) ntg=$2 ;;\n"
    "    -npl) npl=${2%%,*} ;;\n"
    "  esac\n"
    "  shift 2\n"
    "done\n";

// The shape of what llama-bench prints, less fields that nobody reads.
constexpr const char* kPrintTests =
    "echo \"[{\\\"model_filename\\\": \\\"$m\\\", \\\"n_prompt\\\": $p, \\\"n_gen\\\": $n,\"\n"
    "echo \"\\\"n_depth\\\": $d, \\\"avg_ts\\\": 1.0, \\\"samples_ts\\\": [ $rates ]}]\"\n";

class PeerPrograms : public testing::Test {
 protected:
  void SetUp() override {
    root_ = std::filesystem::path(testing::TempDir()) /
            testing::UnitTest::GetInstance()->current_test_info()->name();
    std::filesystem::remove_all(root_);
  }
  void TearDown() override { std::filesystem::remove_all(root_); }

  // The path of a new program `build`/llama-bench, or of another in its folder.
  std::string program(const std::string& build, const std::string& script,
                      const std::string& name = "llama-bench") const {
    const std::filesystem::path path = root_ / build / name;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path) << script;
    std::filesystem::permissions(path, std::filesystem::perms::owner_all);
    return path.string();
  }
  // Runs at `rates` tokens per second, whatever the work.
  std::string steady(const std::string& build, const std::string& rates) const {
    return program(build, std::string(kReadArguments) + "rates=\"" + rates + "\"\n" + kPrintTests);
  }

  std::filesystem::path root_;
};

TEST(Work, AMeasuredPromptIsComputedWholeBehindWhatTheCacheHas) {
  BenchOptions options;
  options.model = story_model();
  options.threads = 1;
  const BenchRun run(*kernels::select_set().value(), options);
  const std::unique_ptr<app::LoadedModel> model = run.load_model().value();
  const std::unique_ptr<BenchEngine> engine =
      BenchEngine::create(*model, run, run.backend_options(4).value()).value();
  for (const std::uint32_t depth : {0u, 70u}) {
    const Work prefill = {.name = "", .title = "a prompt", .depth = depth, .prompt_tokens = 33};
    EXPECT_GT(tokens_per_second(*engine, prefill, 1).value(), 0);
    EXPECT_GT(tokens_per_second(*engine, prefill, 2).value(), 0);
    const Result<double> again = tokens_per_second(*engine, prefill, 2);
    ASSERT_FALSE(again.ok()) << "the cache has it";
    EXPECT_THAT(again.error().message, HasSubstr("a prompt: 1 prompt tokens"));
  }
  const Work decode = {.name = "", .title = "", .depth = 20, .new_tokens = 8, .sequences = 4};
  EXPECT_GT(tokens_per_second(*engine, decode, 3).value(), 0);
  EXPECT_GT(tokens_per_second(*engine, decode, 3).value(), 0);
}

TEST(Work, EveryComparedWorkFitsTheDefaultModelsContext) {
  for (const Work& work : compared_works()) {
    EXPECT_LE(work.context_tokens(), 8192u) << work.title;
    EXPECT_EQ(work.is_prefill(), work.prompt_tokens > 0) << work.title;
  }
}

TEST(Peer, WorkIsAskedForInLlamaCppsWords) {
  const Peer peer = {"builds/amx/llama-bench", "models/a.gguf"};
  const PeerSettings settings = {.threads = 2, .batched_tokens_max = 1024, .tries = 3};
  EXPECT_THAT(
      peer_command(peer, work_named("decode-4k"), settings),
      ElementsAre("builds/amx/llama-bench", "-m", "models/a.gguf", "-t", "2", "-b", "1024", "-ub",
                  "1024", "-p", "0", "-n", "64", "-d", "4096", "-r", "3", "-o", "json"));
  EXPECT_THAT(
      peer_command(peer, work_named("prefill-4k"), settings),
      ElementsAre("builds/amx/llama-bench", "-m", "models/a.gguf", "-t", "2", "-b", "1024", "-ub",
                  "1024", "-p", "256", "-n", "0", "-d", "4096", "-r", "3", "-o", "json"));
  EXPECT_THAT(peer_command(peer, work_named("batch"), settings),
              ElementsAre("builds/amx/llama-batched-bench", "-m", "models/a.gguf", "-t", "2", "-b",
                          "1024", "-ub", "1024", "-npp", "128", "-ntg", "64", "-npl", "16,16,16",
                          "-c", "3072", "--output-format", "jsonl"));
}

TEST(Peer, RatesAreReadFromWhatLlamaCppPrints) {
  std::ifstream tests(test_data() + "/peer/llama_bench.json");
  const std::string printed(std::istreambuf_iterator<char>(tests), {});
  const Work work = {.name = "", .title = "", .depth = 32, .new_tokens = 4};
  const Result<std::vector<double>> rates = read_peer_rates(work, printed);
  ASSERT_TRUE(rates.ok()) << rates.error().message;
  EXPECT_THAT(rates.value(), ElementsAre(140.45, 161.027, 160.842));

  std::ifstream batches(test_data() + "/peer/llama_batched_bench.jsonl");
  const std::string lines(std::istreambuf_iterator<char>(batches), {});
  const Work batch = {.name = "", .title = "", .depth = 16, .new_tokens = 4, .sequences = 2};
  const Result<std::vector<double>> totals = read_peer_rates(batch, lines);
  ASSERT_TRUE(totals.ok()) << totals.error().message;
  EXPECT_THAT(totals.value(), ElementsAre(200.722595, 204.185806, 201.673889));
}

TEST(Peer, AnswersAboutOtherWorkAreNotUnderstood) {
  const Work decode = {.name = "", .title = "", .depth = 8, .new_tokens = 4};
  const auto understood = [&](const char* printed) {
    return read_peer_rates(decode, printed).ok();
  };
  EXPECT_TRUE(understood(R"([{"n_prompt": 0, "n_gen": 4, "n_depth": 8, "samples_ts": [1.5]}])"));
  for (const char* const printed :
       {"", "rubbish", "[]", "{}", "[1]", "[{}]", "[{\"n_prompt\": 0",
        R"([{"n_prompt": 0, "n_gen": 4, "n_depth": 9, "samples_ts": [1.5]}])",
        R"([{"n_prompt": 1, "n_gen": 4, "n_depth": 8, "samples_ts": [1.5]}])",
        R"([{"n_prompt": 0, "n_gen": 5, "n_depth": 8, "samples_ts": [1.5]}])",
        R"([{"n_prompt": 0, "n_gen": 4, "n_depth": 8, "samples_ts": []}])",
        R"([{"n_prompt": 0, "n_gen": 4, "n_depth": 8, "samples_ts": ["fast"]}])",
        R"([{"n_prompt": 0, "n_gen": 4, "n_depth": 8, "samples_ts": [0]}])",
        R"([{"n_prompt": 0, "n_gen": 4, "n_depth": 8}])"}) {
    EXPECT_FALSE(understood(printed)) << printed;
  }
}

TEST(Peer, LinesAboutOtherBatchesAreNotUnderstood) {
  const Work batch = {.name = "", .title = "", .depth = 8, .new_tokens = 4, .sequences = 2};
  const auto understood = [&](const char* printed) { return read_peer_rates(batch, printed).ok(); };
  EXPECT_TRUE(understood("\n{\"pp\": 8, \"tg\": 4, \"pl\": 2, \"speed_tg\": 9.5}\nsaid\n"));
  for (const char* const printed :
       {"", "rubbish", "{", "{}", "{\"pp\": 9, \"tg\": 4, \"pl\": 2, \"speed_tg\": 9.5}",
        "{\"pp\": 8, \"tg\": 5, \"pl\": 2, \"speed_tg\": 9.5}",
        "{\"pp\": 8, \"tg\": 4, \"pl\": 3, \"speed_tg\": 9.5}",
        "{\"pp\": 8, \"tg\": 4, \"pl\": 2, \"speed_tg\": 0}"}) {
    EXPECT_FALSE(understood(printed)) << printed;
  }
}

TEST_F(PeerPrograms, ThePeerCountsWithItsBestProgramAndModel) {
  const std::string slow = steady("slow", "10, 11, 12");
  // Twice as fast with the other model.
  const std::string fast = program(
      "fast", std::string(kReadArguments) +
                  "case $m in *other*) rates='40, 50, 60' ;; *) rates='20, 21, 22' ;; esac\n" +
                  kPrintTests);
  const nlohmann::json json =
      bench_json("peer", {"--llama-bench", slow, fast, "--peer-model", "other.gguf", "--works",
                          "decode", "--repeats", "1", "--repeats-max", "1"});
  ASSERT_EQ(json["rows"].size(), 1u);
  const nlohmann::json& row = json["rows"][0];
  EXPECT_EQ(row["work"], "decode, empty context");
  EXPECT_EQ(row["peer_tokens_per_second"], 50);
  EXPECT_EQ(row["peer_program"], "fast/llama-bench");
  EXPECT_EQ(row["peer_model"], "other.gguf");
  EXPECT_GT(row["tokens_per_second"], 0);
  EXPECT_DOUBLE_EQ(row["ratio"], row["tokens_per_second"].get<double>() / 50);
  EXPECT_TRUE(row["ratio_from"].is_null()) << "one round says nothing of the next";
  EXPECT_EQ(json["is_precise"], false);
  EXPECT_EQ(json["peers"].size(), 4u) << "two programs, two models";
  EXPECT_TRUE(json["left_out"].empty());
}

TEST_F(PeerPrograms, BothProgramsAreKeptToTheFastestCoresWhenAskedFor) {
  cpu_set_t before;
  ASSERT_EQ(sched_getaffinity(0, sizeof before, &before), 0);
  const std::string cores = (root_ / "cores").string();
  const std::string peer =
      program("build", std::string(kReadArguments) +
                           "sed -n 's/^Cpus_allowed_list:[^0-9]*//p' /proc/self/status >> " +
                           cores + "\nrates='10, 11, 12'\n" + kPrintTests);
  const nlohmann::json json =
      bench_json("peer", {"--llama-bench", peer, "--works", "decode", "--repeats", "2",
                          "--repeats-max", "2", "-t", "1", "--fastest-cores"});
  ASSERT_EQ(sched_setaffinity(0, sizeof before, &before), 0);
  std::ifstream file(cores);
  for (int turn = 0; turn < 2; ++turn) {
    std::string core;
    ASSERT_TRUE(std::getline(file, core));
    EXPECT_EQ(core.find_first_not_of("0123456789"), std::string::npos) << core << " is one core";
  }
  const nlohmann::json& row = json["rows"][0];
  const double least = row["core_tmac_per_second_min"];
  EXPECT_GT(least, 0);
  EXPECT_GE(row["core_tmac_per_second_max"], least);
}

TEST_F(PeerPrograms, OnlyPeersNearTheBestAreMeasuredAgain) {
  const std::string calls = (root_ / "calls").string();
  const auto counted = [&](const std::string& build, const std::string& rate) {
    return program(build, std::string(kReadArguments) + "echo " + build + " >>" + calls +
                              "\nrates=" + rate + "\n" + kPrintTests);
  };
  bench_json("peer",
             {"--llama-bench", counted("best", "100"), counted("near", "80"), counted("far", "60"),
              "--works", "decode", "--repeats", "3", "--repeats-max", "3"});
  std::ifstream stream(calls);
  std::map<std::string, int> times;
  for (std::string build; stream >> build;) ++times[build];
  EXPECT_EQ(times["best"], 3);
  EXPECT_EQ(times["near"], 3);
  EXPECT_EQ(times["far"], 1);
}

TEST_F(PeerPrograms, RoundsGoOnUntilTheRatioIsPreciseEnough) {
  const std::string calls = (root_ / "calls").string();
  // A peer that is now twice as fast, now not: its ratio is never precise to 1 %.
  const std::string restless =
      program("restless", std::string(kReadArguments) + "echo round >>" + calls +
                              "\nif [ $(($(wc -l <" + calls + ") % 2)) = 0 ]; then rates=50; " +
                              "else rates=100; fi\n" + kPrintTests);
  const auto rounds_for = [&](const std::string& precision) {
    return bench_json("peer", {"--llama-bench", restless, "--works", "decode", "--repeats", "2",
                               "--repeats-max", "6", "--precision", precision});
  };
  const nlohmann::json fine = rounds_for("0.01");
  EXPECT_EQ(fine["rows"][0]["rounds"], 6);
  EXPECT_EQ(fine["is_precise"], false);
  EXPECT_LT(fine["rows"][0]["ratio_from"], fine["rows"][0]["ratio"]);
  EXPECT_GT(fine["rows"][0]["ratio_to"], fine["rows"][0]["ratio"]);
  const nlohmann::json coarse = rounds_for("10");
  EXPECT_LT(coarse["rows"][0]["rounds"], 6);
  EXPECT_EQ(coarse["is_precise"], true);
}

// Expected values: t = 12.7062 and 2.7764 for one and four degrees of freedom, from tables of
// Student's distribution.
TEST(RatioInterval, IsStudentsOverLogarithms) {
  EXPECT_FALSE(ratio_interval(std::vector<double>{2.0}).has_value());
  const RatioInterval two = *ratio_interval(std::vector<double>{1.0, 4.0});
  EXPECT_NEAR(two.ratio, 2, 1e-12);
  EXPECT_NEAR(two.to, 2 * std::exp(12.7062 * std::log(2)), 1);
  EXPECT_NEAR(two.from * two.to, 4, 1e-9) << "symmetric in logarithms";
  const double e = std::exp(0.1);
  const RatioInterval five = *ratio_interval(std::vector<double>{1, e, 1 / e, e * e, 1 / (e * e)});
  EXPECT_NEAR(five.ratio, 1, 1e-12);
  const double deviation = 0.1 * std::sqrt(10.0 / 4);
  EXPECT_NEAR(five.to, std::exp(2.7764 * deviation / std::sqrt(5.0)), 1e-4);
  EXPECT_NEAR(five.width(), five.to - five.from, 1e-12);
  EXPECT_EQ(ratio_interval(std::vector<double>{3, 3, 3})->width(), 0);
}

TEST_F(PeerPrograms, SeveralSequencesAreMeasuredByTheProgramBesideIt) {
  const std::string bench = program("both", "#!/bin/sh\nexit 1\n");
  program("both",
          std::string(kReadArguments) +
              "echo\necho \"{\\\"pp\\\": $npp, \\\"tg\\\": $ntg, \\\"pl\\\": $npl, "
              "\\\"speed_tg\\\": 300}\"\n",
          "llama-batched-bench");
  const nlohmann::json json = bench_json(
      "peer", {"--llama-bench", bench, "--works", "batch", "--repeats", "1", "--repeats-max", "1"});
  EXPECT_EQ(json["rows"][0]["peer_tokens_per_second"], 300);
  EXPECT_GT(json["rows"][0]["tokens_per_second"], 0);
}

TEST_F(PeerPrograms, ABuildThatCrashesIsNamedAndLeftOut) {
  const std::string crashes = program("crashes", "#!/bin/sh\nkill -ILL $$\n");
  const std::string works = steady("works", "30");
  const cli::Captured captured =
      run_bench("peer", {"--llama-bench", crashes, works, "--works", "decode", "--repeats", "2",
                         "--repeats-max", "2", "--json"});
  EXPECT_EQ(captured.exit_status, 0);
  EXPECT_THAT(captured.err, HasSubstr("crashes/llama-bench"));
  EXPECT_THAT(captured.err, HasSubstr("ended by signal 4"));
  const nlohmann::json json = nlohmann::json::parse(captured.out);
  EXPECT_EQ(json["rows"][0]["peer_program"], "works/llama-bench");
  ASSERT_EQ(json["left_out"].size(), 1u);
  EXPECT_THAT(json["left_out"][0].get<std::string>(), HasSubstr("crashes/llama-bench"));
}

TEST_F(PeerPrograms, WithoutAnyPeerLeftTheReasonsAreSaid) {
  const std::string crashes = program("crashes", "#!/bin/sh\nkill -ILL $$\n");
  const std::string rubbish = program("rubbish", "#!/bin/sh\necho 'hello there'\n");
  const std::string fails = program("fails", "#!/bin/sh\necho 'cannot load' >&2\nexit 1\n");
  const cli::Captured captured =
      run_bench("peer", {"--llama-bench", crashes, rubbish, fails, "--works", "decode"});
  EXPECT_EQ(captured.exit_status, 1);
  EXPECT_EQ(captured.out, "");
  EXPECT_THAT(captured.err, HasSubstr("no peer is left"));
  EXPECT_THAT(captured.err, HasSubstr("ended by signal 4"));
  EXPECT_THAT(captured.err, HasSubstr("not understood: \"hello there"));
  EXPECT_THAT(captured.err, HasSubstr("ended with status 1: cannot load"));
}

TEST_F(PeerPrograms, AProgramThatIsNotThereIsRefusedBeforeAnythingRuns) {
  const cli::Captured missing =
      run_bench("peer", {"--llama-bench", "/no/such/llama-bench", "--works", "decode"});
  EXPECT_EQ(missing.exit_status, 2);
  EXPECT_THAT(missing.err, HasSubstr("--llama-bench: /no/such/llama-bench cannot be run"));
  const cli::Captured alone =
      run_bench("peer", {"--llama-bench", steady("alone", "30"), "--works", "decode,batch"});
  EXPECT_EQ(alone.exit_status, 2);
  EXPECT_THAT(alone.err, HasSubstr("alone/llama-batched-bench"));
}

}  // namespace
}  // namespace pagoda::bench
