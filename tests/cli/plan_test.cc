// pagoda plan. Numbers are worked out by hand, from the sum of tensors in a file, or are those of a
// backend that was made.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "app/kv_dtype.h"
#include "app/loaded_model.h"
#include "app/memory_plan.h"
#include "base/byte_size.h"
#include "cli/captured_command.h"
#include "default_model.h"
#include "engine/backends/cpu_backend.h"
#include "kernels/select.h"
#include "model/kv_groups.h"
#include "test_data.h"

namespace pagoda::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

Captured plan(std::vector<std::string> words) {
  words.insert(words.begin(), "plan");
  return run_captured(words);
}

nlohmann::json plan_json(std::vector<std::string> words) {
  words.push_back("--json");
  const Captured outcome = plan(words);
  EXPECT_EQ(outcome.exit_status, 0) << outcome.err;
  return nlohmann::json::parse(outcome.out);
}

std::vector<int> requests_in(const nlohmann::json& json, const std::string& dtype) {
  std::vector<int> requests;
  for (const nlohmann::json& cell : json["requests_at_once"]) {
    if (cell["dtype"] == dtype) requests.push_back(cell["requests"]);
  }
  return requests;
}

// 180 GB are left. 2 x 80 layers x heads x 128 x 2 bytes: 2,621,440 a token with 64 heads, of which
// 2,048 tokens take 5.37 GB and 131,072 take 344 GB; an eighth with 8.
TEST(PlanTest, TheTutorialsExampleIsWhatItsFormulaGives) {
  const std::vector<std::string> example = {"--weights",    "140GB", "--memory", "320GB",
                                            "--num-layers", "80",    "--kv",     "fp16"};
  const auto with_heads = [&](const char* heads) {
    std::vector<std::string> words = example;
    words.insert(words.end(), {"--num-kv-heads", heads});
    return plan_json(words);
  };
  const nlohmann::json all = with_heads("64");
  EXPECT_EQ(all["kv_bytes"], 180'000'000'000);
  EXPECT_EQ(all["bytes_per_token"], 2'621'440);
  EXPECT_THAT(requests_in(all, "fp16"), ElementsAre(33, 16, 8, 4, 2, 1, 0));
  EXPECT_THAT(requests_in(with_heads("8"), "fp16"), ElementsAre(268, 134, 67, 33, 16, 8, 4));
  const Captured text = plan({"--weights", "140GB", "--memory", "320GB", "--num-layers", "80",
                              "--num-kv-heads", "64", "--kv", "fp16"});
  EXPECT_THAT(text.out, HasSubstr("fp16                     33       16        8        4        "
                                  "2        1        0\n"));
}

// A token of 4 layers x 2 heads x (10 + 10) x 2 bytes is 320; 8 tokens a block are 2,560.
TEST(PlanTest, WhatWouldMakeTheAskedRequestsFit) {
  const auto asked = [](const char* memory, const char* requests, const char* context) {
    return plan_json({"--weights", "1000000B", "--memory", memory, "--num-layers", "4",
                      "--num-kv-heads", "2", "--head-dim", "10", "--block-size", "8", "--requests",
                      requests, "--context", context});
  };
  // 25 requests of 3 blocks (17 tokens) are 192,000 bytes.
  const nlohmann::json fits = asked("1192000B", "25", "17");
  EXPECT_EQ(fits["fits"], true);
  EXPECT_EQ(fits["would_fit"]["dtype"], "bf16");
  EXPECT_EQ(fits["would_fit"]["context"], 24);
  EXPECT_EQ(fits["would_fit"]["tensor_parallel_size"], 1);
  EXPECT_EQ(fits["tokens"], 600);
  const nlohmann::json lacks = asked("1191999B", "25", "17");
  EXPECT_EQ(lacks["fits"], false);
  EXPECT_EQ(lacks["would_fit"]["context"], 16);
  // A row of 10 in int8 has 12 bytes instead of 20.
  EXPECT_EQ(lacks["would_fit"]["dtype"], "int8");
  // On two ranks each has half of the weights and one head of 160 bytes a token.
  EXPECT_EQ(lacks["would_fit"]["tensor_parallel_size"], 2);
  EXPECT_THAT(lacks["serve"],
              "pagoda serve MODEL --device cpu --max-model-len 17 --max-num-seqs 25 "
              "--kv-cache-dtype int8 --kv-cache-memory-bytes 191999B");
  const nlohmann::json none = asked("900000B", "1", "17");
  EXPECT_EQ(none["kv_bytes"], -100'000);
  EXPECT_EQ(none["fits"], false);
  EXPECT_EQ(none["would_fit"]["dtype"], nullptr);
  EXPECT_EQ(none["serve"], "");
}

TEST(PlanTest, OfAGpuAShareIsUsedAndWorkspaceIsLeft) {
  // 0.92 x 80 GiB - 2 GiB - 35 GB.
  const nlohmann::json json = plan_json({"--weights", "140GB", "--gpu", "80GiB", "--num-layers",
                                         "80", "--tensor-parallel-size", "4"});
  EXPECT_EQ(json["kv_bytes"],
            static_cast<std::int64_t>(0.92 * (80LL << 30)) - (2LL << 30) - 35'000'000'000);
  const nlohmann::json small = plan_json({"--weights", "5GB", "--gpu", "24GiB"});
  EXPECT_EQ(small["workspace_bytes"], 1LL << 30) << "its steps are smaller";
  EXPECT_EQ(json["bytes_per_token"], 2 * 80 * 2 * 128 * 2) << "two of eight heads on each rank";
  // 4 GB and 1 GiB of workspace in 0.92 GiB.
  EXPECT_THAT(plan({"--weights", "4GB", "--gpu", "1GiB"}).out,
              HasSubstr("none: 4,085,899,346 bytes (3.81 GiB) are lacking for weights and "
                        "workspace alone"));
  EXPECT_THAT(plan({"--weights", "4GB", "--memory", "1GB"}).out,
              HasSubstr("are lacking for weights alone"));
  const nlohmann::json one = plan_json({"--weights", "16GB", "--gpu", "80GiB"});
  EXPECT_THAT(one["serve"], HasSubstr("--device cuda --max-model-len 8192"));
  EXPECT_THAT(one["serve"], HasSubstr("--gpu-memory-utilization 0.92"));
}

// Ranks compute on CPUs: of several GPUs there are numbers, and no line to serve with.
TEST(PlanTest, OfSeveralGpusNumbersAreForComparison) {
  const std::vector<std::string> several = {
      "--weights", "140GB", "--gpu", "80GB", "--num-layers", "80", "--tensor-parallel-size", "4"};
  EXPECT_EQ(plan_json(several)["serve"], "");
  const Captured text = plan(several);
  EXPECT_THAT(text.out, HasSubstr("Pagoda computes on one GPU today, and ranks are for CPUs: these "
                                  "numbers are for comparison.\n"));
  EXPECT_THAT(text.out, Not(HasSubstr("pagoda serve")));
  const Captured advice =
      plan({"--weights", "16GB", "--gpu", "80GiB", "--requests", "64", "--context", "16384"});
  EXPECT_THAT(advice.out, HasSubstr("on 2 such GPUs, if it computed on several: Pagoda computes on "
                                    "one GPU today"));
  EXPECT_THAT(advice.out, Not(HasSubstr("--tensor-parallel-size")));
  EXPECT_THAT(plan({"--help"}).out, HasSubstr("four GPUs, for comparison"));
  const nlohmann::json machines = plan_json({"--weights", "140GB", "--memory", "80GB",
                                             "--num-layers", "80", "--tensor-parallel-size", "4"});
  EXPECT_THAT(machines["serve"], HasSubstr("--device cpu")) << "ranks of CPUs are served";
  EXPECT_THAT(machines["serve"], HasSubstr("--tensor-parallel-size 4"));
  EXPECT_THAT(plan({"--weights", "16GB", "--memory", "20GB", "--requests", "24"}).out,
              HasSubstr(" ranks with as much memory each (--tensor-parallel-size)\n"));
}

// The words behind a flag of the line to serve with.
std::string of_line(const nlohmann::json& json, const std::string& flag) {
  const std::string line = json["serve"];
  const std::size_t at = line.find(flag + " ");
  if (at == std::string::npos) return "";
  const std::size_t begin = at + flag.size() + 1;
  return line.substr(begin, line.find(' ', begin) - begin);
}

// A backend with what the line says has the context that it says, and none that is longer.
void expect_the_line_to_hold(const std::string& path, std::uint64_t kv_bytes,
                             const kernels::KernelSet& set) {
  const auto model = app::LoadedModel::load(path, set).value();
  std::uint64_t weights = 0;
  for (const gguf::Tensor& tensor : model->file().tensors()) weights += tensor.bytes.size();
  const nlohmann::json json =
      plan_json({"--model", path, "--memory", std::to_string(weights + kv_bytes) + "B", "--context",
                 "1000000", "--kv", "fp32"});
  // Pages of layers with windows are cut in groups that the plan's sum does not know.
  const kv::memory::CacheGroupPlan plan = model::plan_kv_groups(model->config(), set, {}, 16);
  for (const kv::memory::AttentionSpec& group : plan.groups) {
    if (group.window > 0) return;
  }
  ASSERT_FALSE(json["fits"]) << path;
  engine::BackendOptions options;
  options.threads = 1;
  options.scheduler.batched_tokens_max = 512;
  options.kv_bytes = parse_byte_size(of_line(json, "--kv-cache-memory-bytes")).value();
  options.kv_cache_dtype = *app::parse_kv_dtype(of_line(json, "--kv-cache-dtype")).value();
  const std::uint64_t promised = std::stoull(of_line(json, "--max-model-len"));
  for (const std::uint64_t asked : {promised, std::uint64_t{1'000'000}}) {
    options.context_tokens = asked;
    const auto backend =
        engine::CpuBackend::create(model->config(), model->weights(), set, options);
    ASSERT_TRUE(backend.ok()) << path << ": " << backend.error().message;
    EXPECT_EQ(backend.value()->core_options().limits.context_tokens, promised)
        << path << " " << json["serve"];
  }
}

TEST(PlanTest, TheLineToServeWithHoldsItsContextWithoutWindows) {
  const kernels::KernelSet& set = *kernels::select_set().value();
  for (const auto& entry : std::filesystem::directory_iterator(test_data() + "/models")) {
    if (entry.path().extension() != ".gguf") continue;
    expect_the_line_to_hold(entry.path().string(), 3 << 20, set);
  }
}

TEST(PlanTest, TheLineToServeWithHoldsItsContextOfTheDefaultModel) {
  REQUIRE_DEFAULT_MODEL();
  expect_the_line_to_hold(pagoda::default_model_path(), 180 << 20, *kernels::select_set().value());
}

// 10 blocks of 16 tokens of 320 bytes: one is left free for the copy of a block that is shared in
// part, as `serve` leaves it.
TEST(PlanTest, ABlockIsLeftFreeBesideARequestAlone) {
  const std::vector<std::string> shape = {"--weights",      "1000000B", "--memory",   "1051200B",
                                          "--num-layers",   "4",        "--head-dim", "10",
                                          "--num-kv-heads", "2",        "--context"};
  const auto with_context = [&](const char* tokens) {
    std::vector<std::string> words = shape;
    words.emplace_back(tokens);
    return plan_json(words);
  };
  EXPECT_EQ(with_context("160")["tokens"], 160);
  EXPECT_EQ(with_context("144")["fits"], true);
  EXPECT_EQ(with_context("145")["fits"], false);
  EXPECT_EQ(with_context("145")["would_fit"]["context"], 144);
}

// 3 KV heads on 2 ranks are 2 and 1 of them: the fullest has 160 blocks of 5,120 bytes,
// and both together need half as much again.
TEST(PlanTest, TheLineOfRanksSaysWhatAllOfThemTake) {
  const nlohmann::json json =
      plan_json({"--weights", "2000000B", "--memory", "1819200B", "--num-layers", "4", "--head-dim",
                 "10", "--num-kv-heads", "3", "--tensor-parallel-size", "2"});
  EXPECT_EQ(json["kv_bytes"], 819'200);
  EXPECT_EQ(json["tokens"], 1280 * 2);
  EXPECT_EQ(of_line(json, "--kv-cache-memory-bytes"), "1200KiB");
}

TEST(PlanTest, SaysInWordsWhyNothingFits) {
  const auto told = [](const char* memory, std::vector<std::string> more) {
    more.insert(more.begin(), {"--weights", "100MiB", "--memory", memory});
    return plan(more).out;
  };
  EXPECT_THAT(told("50MiB", {"--context", "64"}),
              HasSubstr("\nThe weights (100.00 MiB) exceed the memory of 50.00 MiB: no request "
                        "fits. It fits\n  on 3 ranks "));
  EXPECT_THAT(told("50MiB", {}), HasSubstr(" of 50.00 MiB: no request fits.\n"));
  EXPECT_THAT(told("50MiB", {"--workspace", "1MiB"}),
              HasSubstr("The weights (100.00 MiB) and the workspace (1.00 MiB) exceed the memory"));
  EXPECT_THAT(told("100MiB", {}),
              HasSubstr("The weights (100.00 MiB) leave nothing of 100.00 MiB"));
  EXPECT_THAT(told("104MiB", {}), HasSubstr("\n1 request of 8,192 tokens does not fit in bf16: "
                                            "none would. It fits\n  with at most 16 tokens each"));
  EXPECT_THAT(told("104MiB", {"--requests", "2"}),
              HasSubstr("\n2 requests of 8,192 tokens do not fit in bf16: none would. They fit\n"));
  EXPECT_THAT(
      told("101MiB", {}),
      HasSubstr("none would. Neither a smaller KV dtype nor a shorter context alone is enough.\n"));
  EXPECT_THAT(told("2GiB", {}), HasSubstr("\n1 request of 8,192 tokens fits in bf16: 1 would.\n"));
}

// `plan` and `size` take every name that `serve` takes for --kv-cache-dtype.
TEST(PlanTest, TakesTheKvTypesOfServe) {
  const auto dtype = [](const char* name) {
    return plan_json({"--weights", "1GB", "--memory", "64GB", "--kv", name});
  };
  EXPECT_EQ(dtype("q8_0"), dtype("int8"));
  EXPECT_EQ(dtype("q4_0"), dtype("int4"));
  EXPECT_EQ(dtype("f16"), dtype("fp16"));
  EXPECT_EQ(dtype("fp8_e4m3"), dtype("fp8"));
  EXPECT_EQ(dtype("auto"), dtype("bf16"));
  EXPECT_EQ(dtype("int8/int4"), dtype("k8v4"));
  const nlohmann::json pair = dtype("bf16/q8_0");
  EXPECT_EQ(pair["dtype"], "bf16/int8");
  EXPECT_EQ(pair["bytes_per_token"], 32 * 8 * (2 * 128 + 128 + 2));
  EXPECT_THAT(pair["serve"], HasSubstr("--kv-cache-dtype bf16/int8"));
}

struct Served {
  std::vector<const char*> more;
  const char* line;  // a part of it; nullptr: there is none
};

TEST(PlanTest, TheLineToServeWithIsOneThatServeTakes) {
  const std::vector<Served> all = {
      {{"--memory", "900GB", "--requests", "600"},
       "--max-num-seqs 600 --max-num-batched-tokens 1200"},
      {{"--memory", "900GB", "--requests", "511"}, "--max-num-seqs 511 --kv-cache-dtype"},
      {{"--memory", "900GB", "--requests", "5000", "--context", "16"}, nullptr},
      {{"--memory", "900GB", "--context", "16"}, "--max-num-seqs 4096"},
      {{"--memory", "900GB", "--tensor-parallel-size", "65"}, nullptr},
      {{"--memory", "900GB", "--kv", "fp4"}, nullptr},
      {{"--memory", "900GB", "--kv", "fp32"}, "--kv-cache-dtype fp32"},
      {{"--gpu", "900GB", "--context", "16"}, "--max-num-seqs 256 --kv-cache-dtype"},
      {{"--gpu", "900GB", "--context", "16", "--requests", "4096"},
       "--max-num-seqs 4096 --kv-cache-dtype"},
      {{"--gpu", "24GiB", "--context", "16", "--requests", "2048"},
       "--max-num-seqs 2048 --max-num-batched-tokens 4096"},
      {{"--gpu", "900GB", "--kv", "fp32"}, nullptr}};
  for (const Served& each : all) {
    std::vector<std::string> words = {"--weights", "16GB"};
    words.insert(words.end(), each.more.begin(), each.more.end());
    const std::string line = plan_json(words)["serve"];
    const std::string shown = ::testing::PrintToString(words);
    if (each.line == nullptr) {
      EXPECT_EQ(line, "") << shown;
    } else {
      EXPECT_THAT(line, HasSubstr(each.line)) << shown;
    }
  }
}

// stories260K was trained on 512 tokens.
TEST(PlanTest, ContextsBeyondTheTrainedOneAreCountedWhereTheyAreAskedFor) {
  const std::string model = test_data() + "/models/stories260K.gguf";
  const auto contexts = [&](std::vector<std::string> more) {
    more.insert(more.begin(), {"--model", model, "--memory", "1GB"});
    std::vector<int> tokens;
    const nlohmann::json json = plan_json(more);
    for (const nlohmann::json& cell : json["requests_at_once"]) {
      if (cell["dtype"] == "bf16") tokens.push_back(cell["tokens"]);
    }
    return tokens;
  };
  EXPECT_THAT(contexts({}), ElementsAre(512));
  EXPECT_THAT(contexts({"--context", "4096"}), ElementsAre(2048, 4096));
  EXPECT_THAT(plan({"--model", model, "--memory", "1GB"}).out, Not(HasSubstr("128K")));
}

TEST(PlanTest, TakesTheNamesOfServe) {
  const auto told = [](std::vector<std::string> words) {
    words.insert(words.begin(), {"--weights", "1GB", "--memory", "64GB"});
    const Captured outcome = plan(words);
    EXPECT_EQ(outcome.exit_status, 0) << outcome.err;
    return outcome.out;
  };
  const std::string ours = told({"--context", "4096", "--requests", "9", "--kv", "int8"});
  EXPECT_EQ(told({"--max-model-len", "4096", "--max-num-seqs", "9", "--kv-cache-dtype", "int8"}),
            ours);
  EXPECT_EQ(told({"-c", "4K", "-np", "9", "--kv", "int8"}), ours);
}

// What a backend over the model says that its cache holds, in every format that CPUs keep.
void expect_the_backends_numbers(const std::string& path, std::uint64_t kv_bytes) {
  const kernels::KernelSet& set = *kernels::select_set().value();
  const auto model = app::LoadedModel::load(path, set).value();
  std::int64_t weights = 0;
  for (const gguf::Tensor& tensor : model->file().tensors()) {
    weights += static_cast<std::int64_t>(tensor.bytes.size());
  }
  for (const char* const format : {"fp32", "bf16", "fp8", "int8", "k8v4", "int4"}) {
    engine::BackendOptions options;
    options.threads = 1;
    options.kv_bytes = kv_bytes;
    options.kv_cache_dtype = *app::parse_kv_dtype(format).value();
    const auto backend =
        engine::CpuBackend::create(model->config(), model->weights(), set, options);
    const bool advised =
        !requests_in(plan_json({"--model", path, "--memory", "1GB", "--kv", "fp32"}), format)
             .empty();
    ASSERT_EQ(backend.ok(), advised) << path << " " << format;
    if (!advised) continue;
    const nlohmann::json json =
        plan_json({"--model", path, "--memory",
                   std::to_string(kv_bytes + static_cast<std::uint64_t>(weights)) + "B", "--kv",
                   format, "--block-size", std::to_string(options.block_tokens)});
    EXPECT_EQ(json["weights_bytes"], weights);
    EXPECT_EQ(json["kv_bytes"], kv_bytes);
    EXPECT_EQ(json["tokens"], backend.value()->kv_tokens()) << path << " " << format;
  }
}

TEST(PlanTest, TokensAreThoseOfAStartOfTinyModels) {
  for (const char* const name : {"stories260K", "arch_qwen3", "arch_gemma3", "arch_deepseek2"}) {
    expect_the_backends_numbers(test_data() + "/models/" + name + ".gguf", 3 << 20);
  }
}

TEST(PlanTest, TokensAreThoseOfAStartOfTheDefaultModel) {
  REQUIRE_DEFAULT_MODEL();
  expect_the_backends_numbers(pagoda::default_model_path(), 100 << 20);
}

// stories260K keeps 5 layers x 4 heads x (8 + 8) x 2 bytes = 640 a token, and drafts for itself
// here: half of the memory is the draft model's.
TEST(PlanTest, ADraftModelTakesItsWeightsAndAsManyTokens) {
  const std::string story = test_data() + "/models/stories260K.gguf";
  const std::int64_t weights = plan_json({"--model", story, "--memory", "1GB"})["weights_bytes"];
  const std::int64_t kv = 640 * 16 * 100;
  const std::string memory = std::to_string(2 * weights + 2 * kv) + "B";
  const std::vector<std::string> words = {"--model", story, "-md", story, "--memory", memory};
  const nlohmann::json json = plan_json(words);
  EXPECT_EQ(json["draft_model"], story);
  EXPECT_EQ(json["draft_weights_bytes"], weights);
  EXPECT_EQ(json["kv_bytes"], 2 * kv);
  EXPECT_EQ(json["draft_kv_bytes"], kv);
  EXPECT_EQ(json["tokens"], 1600);
  EXPECT_THAT(requests_in(json, "bf16"), ElementsAre(3)) << "of 512 tokens";
  EXPECT_THAT(json["serve"], HasSubstr("--model-draft " + story));
  EXPECT_EQ(json["would_fit"]["tensor_parallel_size"], 0) << "ranks take no draft model";
  EXPECT_THAT(plan(words).out, HasSubstr(", of the draft model "));
  const Captured refused =
      plan({"--model", story, "--memory", memory, "-md", story, "--tensor-parallel-size", "2"});
  EXPECT_EQ(refused.exit_status, 2);
  EXPECT_THAT(refused.err, HasSubstr("--model-draft: ranks do not take one"));
}

// Models whose tokens take different numbers of bytes, one of which keeps no int4.
TEST(PlanTest, SharesMemoryWithADraftModelAsABackendDoes) {
  const kernels::KernelSet& set = *kernels::select_set().value();
  const std::string story = test_data() + "/models/stories260K.gguf";
  const auto draft = app::LoadedModel::load(story, set).value();
  const std::string path = test_data() + "/models/arch_gemma3.gguf";
  const auto model = app::LoadedModel::load(path, set).value();
  for (const char* const format : {"bf16", "int8", "fp32"}) {
    engine::BackendOptions options;
    options.threads = 1;
    options.kv_bytes = 3 << 20;
    options.kv_cache_dtype = *app::parse_kv_dtype(format).value();
    options.draft_model = engine::DraftModelParts{
        .name = "draft", .config = &draft->config(), .weights = &draft->weights()};
    const auto backend =
        engine::CpuBackend::create(model->config(), model->weights(), set, options);
    ASSERT_TRUE(backend.ok()) << backend.error().message;
    nlohmann::json json =
        plan_json({"--model", path, "--memory", "1GB", "-md", story, "--kv", format});
    const std::int64_t weights =
        json["weights_bytes"].get<std::int64_t>() + json["draft_weights_bytes"].get<std::int64_t>();
    json = plan_json({"--model", path, "-md", story, "--kv", format, "--memory",
                      std::to_string((3 << 20) + weights) + "B"});
    const engine::Backend* const draft = backend.value()->draft_backend();
    EXPECT_NEAR(json["tokens"], static_cast<double>(backend.value()->kv_tokens()),
                options.block_tokens)
        << format;
    EXPECT_NEAR(json["tokens"], static_cast<double>(draft->kv_tokens()), options.block_tokens)
        << format;
  }
}

// Ten pebibytes are more than an address space holds.
TEST(PlanTest, ACacheThatTheSystemDoesNotGiveIsAnsweredWithAdvice) {
  const kernels::KernelSet& set = *kernels::select_set().value();
  const auto model = app::LoadedModel::load(test_data() + "/models/stories260K.gguf", set).value();
  engine::BackendOptions options;
  options.threads = 1;
  options.block_tokens = 4096;
  options.kv_bytes = std::uint64_t{1} << 62;
  const auto backend = engine::CpuBackend::create(model->config(), model->weights(), set, options);
  ASSERT_FALSE(backend.ok());
  EXPECT_THAT(backend.error().message,
              ::testing::MatchesRegex("the KV cache needs [0-9.]+ PiB, more than the system gives: "
                                      ".*; a smaller `kv_cache_memory_bytes` may fit, .*"));
}

TEST(PlanTest, WrongFlagsAreUsageErrors) {
  const auto refused = [](const std::vector<std::string>& words, const std::string& message) {
    const Captured outcome = plan(words);
    EXPECT_EQ(outcome.exit_status, 2) << ::testing::PrintToString(words) << outcome.out;
    EXPECT_THAT(outcome.err, HasSubstr(message));
    EXPECT_THAT(outcome.out, IsEmpty());
  };
  refused({"--weights", "1GB"}, "one of --gpu and --memory");
  refused({"--weights", "1GB", "--gpu", "1GB", "--memory", "1GB"}, "one of --gpu and --memory");
  refused({"--memory", "1GB"}, "--model or, of a shape, --weights is needed");
  refused({"--memory", "1GB", "--weights", "1GB", "--kv", "int3"},
          "--kv: 'int3' is not one of fp32");
  refused({"--memory", "1GB", "--weights", "1GB", "--requests", "0"}, "--requests");
  refused({"--weights", "16", "--gpu", "80GB"}, "--weights: 16 is 16 bytes: did you mean 16GiB?");
  refused({"--weights", "16GB", "--gpu", "80"}, "--gpu: 80 is 80 bytes: did you mean 80GiB?");
  refused({"--weights", "16GB", "--memory", "80"}, "--memory: 80 is 80 bytes: did you mean");
  refused({"--weights", "16GB", "--gpu", "80GB", "--workspace", "2"}, "did you mean 2GiB?");
  refused({"--memory", "1GB", "--weights", "1GB", "--head-dim", "1000000000", "--num-layers",
           "1000000000"},
          "is out of range");
  const Captured missing = plan({"--model", "/does/not/exist.gguf", "--memory", "1GB"});
  EXPECT_EQ(missing.exit_status, 1);
  EXPECT_THAT(missing.err, HasSubstr("--model: "));
}

}  // namespace
}  // namespace pagoda::cli
