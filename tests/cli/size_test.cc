// Every expected number is worked out by hand from the definition, never copied from output.
// The default shape: 32 layers x 8 KV heads x (128 + 128) values x 2 bytes = 131,072 bytes a
// token; x 64 x 8,192 tokens = 2^17 x 2^19 = 2^36 bytes = 64 GiB.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "app/kv_size.h"
#include "cli/captured_command.h"
#include "gguf/gguf_writer.h"
#include "test_data.h"

namespace pagoda::cli {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

Captured size(std::vector<std::string> words) {
  words.insert(words.begin(), "size");
  return run_captured(words);
}

nlohmann::json json_of(std::vector<std::string> words) {
  words.push_back("--json");
  const Captured outcome = size(words);
  EXPECT_EQ(outcome.exit_status, 0) << outcome.err;
  EXPECT_THAT(outcome.err, IsEmpty());
  return nlohmann::json::parse(outcome.out);
}

std::string model_path(const std::string& name) {
  return test_data() + "/models/" + name + ".gguf";
}

TEST(SizeTest, DefaultsAre64GiB) {
  const Captured outcome = size({});
  EXPECT_EQ(outcome.exit_status, 0);
  EXPECT_THAT(outcome.err, IsEmpty());
  EXPECT_EQ(outcome.out,
            "KV cache\n"
            "  shape             32 layers x 8 KV heads x (128 key + 128 value)\n"
            "  element type      bf16\n"
            "  bytes per token   131,072 per sequence (128.00 KiB)\n"
            "  tokens            64 sequences of 8,192 = 524,288\n"
            "  total             68,719,476,736 bytes (64.00 GiB)\n"
            "  per rank (tp 1)   68,719,476,736 bytes (64.00 GiB): 8 KV heads on each rank\n");
}

TEST(SizeTest, EveryFlagCounts) {
  // 2 x 3 x (5 + 5) x 4 = 240 bytes a token; x 7 x 11 = 18,480.
  const Captured outcome =
      size({"--num-layers", "2", "--num-kv-heads", "3", "--head-dim", "5", "--dtype", "fp32",
            "--batch-size", "7", "--sequence-length", "11"});
  EXPECT_THAT(outcome.out, AllOf(HasSubstr("  bytes per token   240 per sequence (240 B)\n"),
                                 HasSubstr("  tokens            7 sequences of 11 = 77\n"),
                                 HasSubstr("  total             18,480 bytes (18.05 KiB)\n")));
}

struct FormatCase {
  const char* dtype;
  std::int64_t payload_per_token;
  std::int64_t stored_per_token;
  const char* payload;
  const char* stored;
};

class SizeFormatTest : public ::testing::TestWithParam<FormatCase> {};

TEST_P(SizeFormatTest, PayloadAndSizeWithScales) {
  const FormatCase& expected = GetParam();
  const nlohmann::json json = json_of({"--dtype", expected.dtype});
  EXPECT_EQ(json["payload_bytes_per_token"], expected.payload_per_token);
  EXPECT_EQ(json["bytes_per_token"], expected.stored_per_token);
  EXPECT_EQ(json["total_bytes"], expected.stored_per_token * 524288);
  EXPECT_EQ(json["total_payload_bytes"], expected.payload_per_token * 524288);
  EXPECT_EQ(json["total"], expected.stored);
  const bool scaled = expected.payload_per_token != expected.stored_per_token;
  EXPECT_EQ(json.contains("scale_rule"), scaled);
  const std::string text = size({"--dtype", expected.dtype}).out;
  EXPECT_THAT(text, HasSubstr(std::string("(") + expected.stored + ")"));
  if (scaled) {
    EXPECT_THAT(text, AllOf(HasSubstr(std::string("(") + expected.payload + ")"),
                            HasSubstr("payload alone"), HasSubstr("scale")));
  }
}

// 512 vectors of 128 values a token. Scales: 2 bytes a vector, of int4 (and V of k8v4) per 32
// values; of fp4 one byte per 32 values.
INSTANTIATE_TEST_SUITE_P(
    Formats, SizeFormatTest,
    ::testing::Values(FormatCase{"fp32", 262144, 262144, "128.00 GiB", "128.00 GiB"},
                      FormatCase{"bf16", 131072, 131072, "64.00 GiB", "64.00 GiB"},
                      FormatCase{"fp16", 131072, 131072, "64.00 GiB", "64.00 GiB"},
                      FormatCase{"fp8", 65536, 65536 + 512 * 2, "32.00 GiB", "32.50 GiB"},
                      FormatCase{"int8", 65536, 65536 + 512 * 2, "32.00 GiB", "32.50 GiB"},
                      FormatCase{"k8v4", 49152, 49152 + 256 * (2 + 8), "24.00 GiB", "25.25 GiB"},
                      FormatCase{"fp4", 32768, 32768 + 512 * 4, "16.00 GiB", "17.00 GiB"},
                      FormatCase{"int4", 32768, 32768 + 512 * 8, "16.00 GiB", "18.00 GiB"}),
    [](const auto& parameter) { return std::string(parameter.param.dtype); });

TEST(SizeTest, PartialGroupsAndOddNibblesRoundUpPerVector) {
  const auto vectors = [](const char* dtype, std::int64_t dim) {
    const app::KvLayers group = {.layers = 1, .kv_heads = 1, .key_dim = dim, .value_dim = 0};
    return app::kv_size({.groups = {group}, .format = *app::find_kv_format(dtype)})
        .value()
        .per_token;
  };
  EXPECT_EQ(vectors("int8", 80), (app::KvBytes{80, 80 + 2}));
  EXPECT_EQ(vectors("int4", 80), (app::KvBytes{40, 40 + 3 * 2}));
  EXPECT_EQ(vectors("fp4", 3), (app::KvBytes{2, 2 + 1}));
  EXPECT_EQ(vectors("fp8", 80), (app::KvBytes{80, 82}));
}

TEST(SizeTest, HeadsComparedSideBySide) {
  // MHA 2 x 32 x 32 x 128 x 2 = 512 KiB a token, x 16 x 8,192 = 64 GiB; GQA a quarter; MQA a
  // 32nd; MLA 32 x 576 x 2 = 36,864 bytes = 36 KiB a token, x 131,072 = 4.5 GiB.
  const Captured outcome = size({"--compare-heads"});
  EXPECT_EQ(outcome.exit_status, 0);
  EXPECT_EQ(outcome.out,
            "KV cache of 16 sequences of 8192 tokens, 32 layers, bf16\n"
            "       keeps                  per token         total  % of MHA     rank of 1\n"
            "  MHA  32 KV heads           512.00 KiB     64.00 GiB     100.0     64.00 GiB\n"
            "  GQA  8 KV heads            128.00 KiB     16.00 GiB      25.0     16.00 GiB\n"
            "  MQA  1 KV head              16.00 KiB      2.00 GiB       3.1      2.00 GiB\n"
            "  MLA  latent 512 + 64        36.00 KiB      4.50 GiB       7.0      4.50 GiB\n");
}

// The flags of a calculator that tutorials have their readers write.
TEST(SizeTest, QueryHeadsAskForTheComparison) {
  const Captured outcome =
      size({"--batch-size", "16", "--query-heads", "32", "--bytes-per-element", "2.0"});
  EXPECT_EQ(outcome.exit_status, 0) << outcome.err;
  EXPECT_EQ(outcome.out, size({"--compare-heads"}).out);
}

TEST(SizeTest, GivenFlagsWinInTheComparison) {
  const nlohmann::json json = json_of({"--compare-heads", "--batch-size", "64", "--num-heads", "16",
                                       "--num-kv-heads", "4", "--tp-size", "4"});
  ASSERT_EQ(json["heads"].size(), 4U);
  EXPECT_EQ(json["heads"][0]["total"], "128.00 GiB");
  EXPECT_EQ(json["heads"][0]["per_rank"], "32.00 GiB");
  EXPECT_EQ(json["heads"][1]["total"], "32.00 GiB");
  EXPECT_EQ(json["heads"][1]["per_rank"], "8.00 GiB");
  EXPECT_EQ(json["heads"][2]["per_rank"], "8.00 GiB") << "the one head is on every rank";
  EXPECT_EQ(json["heads"][3]["total"], "18.00 GiB");
  EXPECT_EQ(json["heads"][3]["per_rank"], "18.00 GiB") << "latents are not divided";
}

TEST(SizeTest, ComparisonOfQuantisedFormatsShowsThePayload) {
  // int4 MHA: payload a quarter of 64 GiB; 72 bytes for 64 with scales.
  EXPECT_THAT(size({"--compare-heads", "--dtype", "int4"}).out,
              AllOf(HasSubstr("  MHA  32 KV heads           144.00 KiB     18.00 GiB     100.0     "
                              "16.00 GiB"),
                    HasSubstr("one fp16 scale per 32 values")));
}

TEST(SizeTest, BlocksAndUnusedSlots) {
  // A block: 16 x 131,072 = 2,097,152 bytes; three of them 6,291,456.
  EXPECT_THAT(size({"--tokens", "35", "--block-size", "16"}).out,
              HasSubstr("  blocks            35 tokens in blocks of 16: 3 blocks, 13 slots unused\n"
                        "  block             2,097,152 bytes (2.00 MiB)\n"
                        "  held by blocks    6,291,456 bytes (6.00 MiB)\n"));
  EXPECT_THAT(size({"--tokens", "32"}).out, HasSubstr("2 blocks, 0 slots unused"));
  EXPECT_THAT(size({"--tokens", "1"}).out, HasSubstr("1 token in blocks of 16: 1 block, 15 slots"));
  EXPECT_THAT(size({"--block-size", "5000"}).out,
              HasSubstr("8,192 tokens in blocks of 5000: 2 blocks, 1,808 slots unused"));
  const nlohmann::json blocks = json_of({"--tokens", "35"})["blocks"];
  EXPECT_EQ(blocks["blocks"], 3);
  EXPECT_EQ(blocks["slots_unused"], 13);
}

TEST(SizeTest, TableOfKnownModels) {
  const Captured outcome = size({"--table"});
  EXPECT_EQ(outcome.exit_status, 0);
  EXPECT_THAT(
      outcome.out,
      AllOf(
          HasSubstr("            2K            8K           32K          128K\n"),
          HasSubstr(
              "  7B          32     32      1.00 GiB      4.00 GiB     16.00 GiB     64.00 GiB\n"),
          HasSubstr(
              "  13B         40     40      1.56 GiB      6.25 GiB     25.00 GiB    100.00 GiB\n"),
          HasSubstr(
              "  70B         80     64      5.00 GiB     20.00 GiB     80.00 GiB    320.00 GiB\n"),
          HasSubstr("  405B       126    128     15.75 GiB     63.00 GiB    252.00 GiB   1008.00 "
                    "GiB\n")));
  const nlohmann::json json = json_of({"--table"});
  EXPECT_EQ(json["models"][0]["sizes"][0]["bytes"], 1073741824);
  EXPECT_THAT(outcome.out,
              HasSubstr("A table that tutorials repeat differs from this formula, its own: 7B at "
                        "2K 0.5 GiB, 7B at 32K 8 GiB, 70B at 2K 3 GiB, 405B at 2K 24 GiB\n"));
  ASSERT_EQ(json["published_differ"].size(), 4U);
  for (const nlohmann::json& published : json["published_differ"]) {
    for (const nlohmann::json& model : json["models"]) {
      for (const nlohmann::json& size : model["sizes"]) {
        if (model["name"] != published["name"] || size["tokens"] != published["tokens"]) continue;
        EXPECT_NE(size["bytes"].get<double>(), published["gib"].get<double>() * (1 << 30));
      }
    }
  }
  EXPECT_EQ(json["models"][3]["sizes"][3]["bytes"], 1008LL << 30);
}

TEST(SizeTest, RanksShareHeadsAndSomeHaveNoneWhenTheyAreMore) {
  const nlohmann::json two = json_of({"--tp-size", "2"});
  EXPECT_EQ(two["per_rank_bytes"], 32LL << 30);
  EXPECT_EQ(two["per_rank_kv_heads"], 4);
  EXPECT_EQ(two["replicated"], false);
  EXPECT_EQ(two["all_ranks_bytes"], 64LL << 30);

  const nlohmann::json sixteen = json_of({"--tp-size", "16"});
  EXPECT_EQ(sixteen["per_rank_bytes"], 8LL << 30);
  EXPECT_EQ(sixteen["per_rank_kv_heads"], 1);
  EXPECT_EQ(sixteen["replicated"], false);
  EXPECT_EQ(sixteen["all_ranks_bytes"], 64LL << 30);
  EXPECT_THAT(size({"--tp-size", "16"}).out,
              HasSubstr("  per rank (tp 16)  8,589,934,592 bytes (8.00 GiB): 1 KV head on the "
                        "fullest rank, as 16 ranks do not divide them evenly\n"));

  const nlohmann::json three = json_of({"--tp-size", "3"});
  EXPECT_EQ(three["per_rank_kv_heads"], 3);
  EXPECT_EQ(three["per_rank_bytes"], 24LL << 30);
  EXPECT_EQ(three["all_ranks_bytes"], 64LL << 30) << "3 + 3 + 2 heads";
  EXPECT_THAT(size({"--tp-size", "3"}).out, HasSubstr("3 KV heads on the fullest rank"));
}

TEST(SizeTest, TheModelMayBeAWordOfItsOwn) {
  const std::string model = model_path("stories260K");
  EXPECT_EQ(size({model, "--json"}).out, size({"--model", model, "--json"}).out);
  EXPECT_THAT(size({model}).out, HasSubstr("stories260K"));
}

TEST(SizeTest, BadValuesNameTheFlagAndItsRange) {
  const std::vector<std::string> numbers = {"--batch-size",   "--sequence-length", "--num-layers",
                                            "--num-kv-heads", "--head-dim",        "--tp-size",
                                            "--tokens",       "--block-size"};
  for (const std::string& flag : numbers) {
    for (const std::string value :
         {"0", "-1", "1.5", "1e3", "abc", "", " 1", "0x10", "9223372036854775808"}) {
      const Captured outcome = size({flag, value});
      EXPECT_EQ(outcome.exit_status, 2) << flag << " " << value;
      EXPECT_EQ(outcome.err, "error: " + flag + ": '" + value +
                                 "' is not a whole number from 1 to 9223372036854775807\n");
      EXPECT_THAT(outcome.out, IsEmpty());
    }
    const Captured largest = size({flag, "9223372036854775807"});
    EXPECT_EQ(largest.exit_status, 2) << flag;
    EXPECT_THAT(largest.err,
                AllOf(HasSubstr("error: " + flag + ": 9223372036854775807"), HasSubstr("1 to ")));
  }
  const Captured type = size({"--dtype", "q4", "--json"});
  EXPECT_EQ(type.exit_status, 2);
  EXPECT_EQ(
      type.err,
      "error: --dtype: 'q4' is not one of fp32, bf16, fp16, fp8, fp8_e5m2, int8, k8v4, fp4, "
      "int4, another name of theirs (q8_0, q4_0, f16, …), or two of them for keys and values: "
      "bf16/int8\n");
  EXPECT_THAT(type.out, IsEmpty());
}

TEST(SizeTest, TakesTheNamesOfServe) {
  EXPECT_EQ(size({"-c", "8k", "--dtype", "q8_0"}).out,
            size({"--sequence-length", "8000", "--dtype", "int8"}).out);
  EXPECT_EQ(json_of({"--dtype", "bf16/int4"})["scale_rule"], "of V one fp16 scale per 32 values");
}

TEST(SizeTest, TheLargestTotalIsTwoToThe63LessOne) {
  // A sequence takes 2^17 x 2^13 = 2^30 bytes, so that 2^33 of them take 2^63.
  EXPECT_EQ(json_of({"--batch-size", "8589934591"})["total_bytes"], 8589934591LL << 30);
  const Captured outcome = size({"--batch-size", "8589934592"});
  EXPECT_EQ(outcome.exit_status, 2);
  EXPECT_THAT(outcome.err, HasSubstr("--batch-size: 8589934592 is out of range: with the other "
                                     "values it may be 1 to 8589934591"));
}

TEST(SizeTest, FlagsThatDoNotGoTogetherAreRefused) {
  const std::vector<std::vector<std::string>> conflicts = {
      {"--table", "--model", "x.gguf"},         {"--table", "--compare-heads"},
      {"--table", "--dtype", "bf16"},           {"--compare-heads", "--model", "x.gguf"},
      {"--compare-heads", "--tokens", "3"},     {"--model", "x.gguf", "--num-layers", "3"},
      {"--model", "x.gguf", "--head-dim", "3"}, {"--model", "x.gguf", "--query-heads", "3"}};
  for (const std::vector<std::string>& words : conflicts) {
    const Captured outcome = size(words);
    EXPECT_EQ(outcome.exit_status, 2) << ::testing::PrintToString(words);
    EXPECT_THAT(outcome.err, HasSubstr("cannot be combined with"));
    EXPECT_THAT(outcome.out, IsEmpty());
  }
  const Captured uneven = size({"--compare-heads", "--num-heads", "12"});
  EXPECT_EQ(uneven.exit_status, 2);
  EXPECT_THAT(uneven.err, HasSubstr("--num-kv-heads: 8 does not divide --num-heads 12"));
}

TEST(SizeTest, TheEnvironmentGivesWayToTypedFlags) {
  ::setenv("PAGODA_MODEL", "/does/not/exist.gguf", 1);
  ::setenv("PAGODA_BLOCK_SIZE", "16", 1);
  EXPECT_EQ(size({"--num-layers", "32"}).exit_status, 0);
  EXPECT_EQ(size({"--table"}).exit_status, 0);
  EXPECT_EQ(size({"--compare-heads"}).exit_status, 0);
  EXPECT_EQ(size({}).exit_status, 1) << "the model is missing";
  ::unsetenv("PAGODA_MODEL");
  ::unsetenv("PAGODA_BLOCK_SIZE");
}

TEST(SizeModelTest, ShapeAndContextComeFromTheFile) {
  // 2 layers x 2 KV heads x (16 + 16) x 2 bytes = 256 bytes a token, context 256, 64 sequences.
  const nlohmann::json json = json_of({"--model", model_path("tiny_gqa")});
  EXPECT_EQ(json["bytes_per_token"], 256);
  EXPECT_EQ(json["sequence_length"], 256);
  EXPECT_EQ(json["total_bytes"], 256 * 256 * 64);
  const Captured longer = size({"--model", model_path("tiny_gqa"), "--sequence-length", "1000"});
  EXPECT_THAT(longer.out, HasSubstr("the model was trained on 256 tokens of context"));
}

TEST(SizeModelTest, WindowedLayersHoldAtMostTheirWindow) {
  // Two layers of each kind x 2 KV heads x (8 + 8) x 2 bytes = 128 bytes a token and kind.
  const std::string path = model_path("tiny_window");
  EXPECT_EQ(json_of({"--model", path, "--batch-size", "1"})["total_bytes"], 128 * 128 + 24 * 128);
  EXPECT_EQ(
      json_of({"--model", path, "--batch-size", "1", "--sequence-length", "10"})["total_bytes"],
      10 * 256);
  EXPECT_THAT(size({"--model", path}).out,
              HasSubstr("2 layers x 2 KV heads x (8 key + 8 value), last 24 tokens\n"));
}

TEST(SizeModelTest, AMissingOrForeignFileIsAFailureWithItsName) {
  const Captured missing = size({"--model", "/does/not/exist.gguf"});
  EXPECT_EQ(missing.exit_status, 1);
  EXPECT_THAT(missing.err, HasSubstr("--model: /does/not/exist.gguf"));
  EXPECT_THAT(missing.out, IsEmpty());
  EXPECT_EQ(size({"--model", test_data() + "/models/README.md"}).exit_status, 1);
}

class KvModelTest : public ::testing::Test {
 protected:
  void add_shape(const std::string& architecture, std::uint32_t layers) {
    architecture_ = architecture;
    writer_.add("general.architecture", architecture);
    add("block_count", layers);
    add("context_length", 4096);
    add("embedding_length", 64);
    add("attention.head_count", 8);
    writer_.add(architecture + ".attention.layer_norm_rms_epsilon", 1e-5F);
  }
  void add(const std::string& key, std::uint32_t value) {
    writer_.add<std::uint32_t>(architecture_ + "." + key, value);
  }
  Result<app::KvModel> read() {
    bytes_ = writer_.bytes();
    const Result<gguf::File> file = gguf::File::parse(bytes_, "memory");
    return file.ok() ? app::read_kv_model(file.value()) : Result<app::KvModel>(file.error());
  }
  std::vector<app::KvLayers> groups() {
    const Result<app::KvModel> model = read();
    EXPECT_TRUE(model.ok()) << (model.ok() ? "" : model.error().message);
    return model.ok() ? model.value().groups : std::vector<app::KvLayers>{};
  }

  std::string architecture_;
  gguf::GgufWriter writer_;

 private:
  gguf::Bytes bytes_;
};

TEST_F(KvModelTest, KvHeadsDefaultToHeads) {
  add_shape("llama", 3);
  EXPECT_THAT(groups(), ElementsAre(app::KvLayers{3, 8, 8, 8, 0, false}));
}

TEST_F(KvModelTest, KvHeadsMayDifferByLayerAndBeNone) {
  add_shape("llama", 5);
  writer_.add_array<std::uint32_t>("llama.attention.head_count_kv", {4, 2, 0, 4, 2});
  add("attention.key_length", 24);
  add("attention.value_length", 16);
  EXPECT_THAT(groups(), ElementsAre(app::KvLayers{2, 4, 24, 16, 0, false},
                                    app::KvLayers{2, 2, 24, 16, 0, false}));
}

TEST_F(KvModelTest, Gemma3HasFiveWindowedLayersToAFullOne) {
  add_shape("gemma3", 18);
  add("attention.head_count_kv", 1);
  add("attention.sliding_window", 512);
  EXPECT_THAT(groups(), ElementsAre(app::KvLayers{15, 1, 8, 8, 512, false},
                                    app::KvLayers{3, 1, 8, 8, 0, false}));
}

TEST_F(KvModelTest, AWindowWithoutAPatternLeavesLlamaLayersFull) {
  add_shape("llama", 4);
  add("attention.sliding_window", 512);
  EXPECT_THAT(groups(), ElementsAre(app::KvLayers{4, 8, 8, 8, 0, false}));
}

TEST_F(KvModelTest, APatternMayBeOneFlagPerLayer) {
  add_shape("llama", 3);
  add("attention.sliding_window", 512);
  writer_.add_array<bool>("llama.attention.sliding_window_pattern", {false, true, true});
  EXPECT_THAT(groups(), ElementsAre(app::KvLayers{1, 8, 8, 8, 0, false},
                                    app::KvLayers{2, 8, 8, 8, 512, false}));
}

TEST_F(KvModelTest, LatentLayersKeepOneVector) {
  add_shape("deepseek2", 27);
  add("attention.head_count_kv", 1);
  add("attention.kv_lora_rank", 512);
  add("rope.dimension_count", 64);
  EXPECT_THAT(groups(), ElementsAre(app::KvLayers{27, 1, 576, 0, 0, true}));
}

TEST_F(KvModelTest, NumbersBeyondAnyModelAreRefusedByName) {
  add_shape("llama", 1U << 20);
  const Result<app::KvModel> model = read();
  ASSERT_FALSE(model.ok());
  EXPECT_EQ(model.error().message, "memory: llama.block_count is 1048576, expected 1 to 65536");
}

TEST_F(KvModelTest, ArraysMustHaveAValuePerLayer) {
  add_shape("llama", 3);
  writer_.add_array<std::uint32_t>("llama.attention.head_count_kv", {4, 2});
  const Result<app::KvModel> model = read();
  ASSERT_FALSE(model.ok());
  EXPECT_THAT(model.error().message, HasSubstr("head_count_kv has 2 values for 3 layers"));
}

}  // namespace
}  // namespace pagoda::cli
