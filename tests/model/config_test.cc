// Tests reading a model's configuration and weights: what is refused, and with which words.
#include "model/config.h"

#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "gguf/gguf_writer.h"
#include "kernels/select.h"
#include "model/weights.h"

namespace pagoda::model {
namespace {

using gguf::GgufWriter;
using gguf::TensorType;

constexpr std::int64_t kWidth = 8;
constexpr std::int64_t kHidden = 12;
constexpr std::int64_t kVocabulary = 5;

struct Keys {
  std::string architecture = "llama";
  std::uint32_t layers = 1;
  std::uint32_t heads = 2;
  std::uint32_t kv_heads = 1;
  std::uint32_t context = 64;
  bool epsilon = true;
  std::function<void(GgufWriter&)> more = [](GgufWriter&) {};
};

void add_keys(GgufWriter& writer, const Keys& keys) {
  writer.add("general.architecture", keys.architecture);
  writer.add(keys.architecture + ".block_count", keys.layers);
  writer.add(keys.architecture + ".context_length", keys.context);
  writer.add(keys.architecture + ".embedding_length", static_cast<std::uint32_t>(kWidth));
  writer.add(keys.architecture + ".feed_forward_length", static_cast<std::uint32_t>(kHidden));
  writer.add(keys.architecture + ".attention.head_count", keys.heads);
  writer.add(keys.architecture + ".attention.head_count_kv", keys.kv_heads);
  if (keys.epsilon) {
    writer.add(keys.architecture + ".attention.layer_norm_rms_epsilon", 1e-5F);
  }
  keys.more(writer);
}

void add_zeros(GgufWriter& writer, const std::string& name, std::int64_t columns,
               std::int64_t rows) {
  writer.add_tensor<float>(name, TensorType::kF32, {columns, rows},
                           std::vector<float>(static_cast<std::size_t>(columns * rows)));
}

// Adds all tensors of a one-layer model except the one called `without`.
void add_tensors(GgufWriter& writer, const std::string& without = "") {
  const auto add = [&](const std::string& name, std::int64_t columns, std::int64_t rows) {
    if (name != without) add_zeros(writer, name, columns, rows);
  };
  add("token_embd.weight", kWidth, kVocabulary);
  add("output_norm.weight", kWidth, 1);
  add("blk.0.attn_norm.weight", kWidth, 1);
  add("blk.0.attn_q.weight", kWidth, 8);
  add("blk.0.attn_k.weight", kWidth, 4);
  add("blk.0.attn_v.weight", kWidth, 4);
  add("blk.0.attn_output.weight", 8, kWidth);
  add("blk.0.ffn_norm.weight", kWidth, 1);
  add("blk.0.ffn_gate.weight", kWidth, kHidden);
  add("blk.0.ffn_up.weight", kWidth, kHidden);
  add("blk.0.ffn_down.weight", kHidden, kWidth);
}

struct Loaded {
  gguf::Bytes bytes;
  Result<gguf::File> file;
};

Loaded parse(const GgufWriter& writer) {
  gguf::Bytes bytes = writer.bytes();
  auto file = gguf::File::parse(bytes, "test.gguf");
  return {std::move(bytes), std::move(file)};
}

Result<Config> config_of(const Keys& keys) {
  GgufWriter writer;
  add_keys(writer, keys);
  add_zeros(writer, "token_embd.weight", kWidth, kVocabulary);
  const Loaded loaded = parse(writer);
  return read_config(loaded.file.value());
}

// Returns the message of the error, or "fine".
template <class T>
std::string message_of(const Result<T>& result) {
  return result.ok() ? "fine" : result.error().message;
}

TEST(Config, ReadsWhatTheFileSaysAndDerivesTheRest) {
  const Config config = config_of({}).value();
  EXPECT_EQ(config.layers, 1u);
  EXPECT_EQ(config.context, 64u);
  EXPECT_EQ(config.vocabulary, 5u);
  EXPECT_EQ(config.key_dim, 4u);
  EXPECT_EQ(config.value_dim, 4u);
  EXPECT_EQ(config.ropes.front().dims, 4u);
  EXPECT_EQ(config.group(), 2u);
  EXPECT_EQ(config.attention, std::vector<kv::memory::AttentionSpec>(1));
}

TEST(Config, EveryPatternThLayerIsFull) {
  Keys keys = {.layers = 5};
  keys.more = [](GgufWriter& writer) {
    writer.add("llama.attention.sliding_window", 24u);
    writer.add("llama.attention.sliding_window_pattern", 3u);
  };
  const Config config = config_of(keys).value();
  std::vector<std::uint32_t> windows;
  for (const auto& spec : config.attention) windows.push_back(spec.window);
  EXPECT_EQ(windows, (std::vector<std::uint32_t>{24, 24, 0, 24, 24}));
}

TEST(Config, RopeFactorsComeUnderSeveralNames) {
  const auto rope_of = [](const char* architecture, std::function<void(GgufWriter&)> more) {
    Keys keys = {.architecture = architecture};
    keys.more = std::move(more);
    return config_of(keys).value().ropes.front();
  };
  const auto none =
      rope_of("llama", [](GgufWriter& w) { w.add("llama.rope.scaling.factor", 0.0f); });
  EXPECT_EQ(none.scaling, RopeScaling::kNone);
  for (const char* key : {"llama.rope.scale_linear", "llama.rope.scaling.factor"}) {
    const auto old = rope_of("llama", [&](GgufWriter& w) { w.add(key, 4.0f); });
    EXPECT_EQ(old.scaling, RopeScaling::kLinear) << key;
    EXPECT_EQ(old.factor, 4.0) << key;
  }
  const auto yarn = [&](std::string architecture, const char* name) {
    return rope_of(architecture.c_str(), [&](GgufWriter& w) {
      w.add(architecture + ".rope.scaling.type", "yarn");
      w.add(architecture + ".rope.scaling.factor", 8.0f);
      w.add(architecture + ".rope.scaling.original_context_length", 32u);
      w.add(architecture + ".rope.scaling." + name, 1.25f);
    });
  };
  EXPECT_EQ(yarn("llama", "yarn_attn_factor").attention_factor, 1.25);
  EXPECT_EQ(yarn("olmo2", "attn_factor").attention_factor, 1.25);
  EXPECT_NEAR(yarn("llama", "attn_factor").attention_factor, 1.25 * 1.2079441541679836, 1e-9);
}

TEST(Config, TheFirstPhi3HasAWindowThatItsFileLacks) {
  const auto window_of = [](std::uint32_t layers, std::uint32_t context) {
    Keys keys = {.architecture = "phi3", .layers = layers, .context = context};
    return config_of(keys).value().attention.back().window;
  };
  EXPECT_EQ(window_of(32, 4096), 2047u);
  EXPECT_EQ(window_of(40, 4096), 2047u);
  EXPECT_EQ(window_of(40, 16384), 0u);
  EXPECT_EQ(window_of(2, 4096), 0u);
}

TEST(Config, ScoresHaveTheScaleOfTheFileOrTheArchitecture) {
  const auto scale_of = [](const char* architecture, std::uint32_t layers, float given) {
    Keys keys = {.architecture = architecture, .layers = layers};
    keys.more = [&](GgufWriter& writer) {
      writer.add(std::string(architecture) + ".attention.key_length", 16u);
      writer.add(std::string(architecture) + ".attention.value_length", 16u);
      writer.add(std::string(architecture) + ".rope.freq_base", 1e6f);
      if (given != 0) writer.add(std::string(architecture) + ".attention.scale", given);
    };
    return config_of(keys).value().score_scale();
  };
  EXPECT_EQ(scale_of("llama", 2, 0), 0.25f);
  EXPECT_EQ(scale_of("llama", 2, 0.125f), 0.125f);
  EXPECT_EQ(scale_of("gemma3", 2, 0), 0.25f);
  // Gemma 3 27B: width over heads, 8 / 2 here, is not the size of a head.
  EXPECT_EQ(scale_of("gemma3", 62, 0), 0.5f);
}

TEST(Config, OneKvHeadCountPerLayerIsFineWhenAllAreEqual) {
  GgufWriter writer;
  Keys keys = {.layers = 2};
  add_zeros(writer, "token_embd.weight", kWidth, kVocabulary);
  writer.add("general.architecture", "llama");
  writer.add("llama.block_count", 2u);
  writer.add("llama.context_length", 64u);
  writer.add("llama.embedding_length", 8u);
  writer.add("llama.feed_forward_length", 12u);
  writer.add("llama.attention.head_count", 4u);
  writer.add("llama.attention.layer_norm_rms_epsilon", 1e-5F);
  GgufWriter uneven = writer;
  writer.add_array<std::uint32_t>("llama.attention.head_count_kv", {2, 2});
  uneven.add_array<std::uint32_t>("llama.attention.head_count_kv", {2, 1});
  EXPECT_EQ(read_config(parse(writer).file.value()).value().kv_heads, 2u);
  EXPECT_NE(message_of(read_config(parse(uneven).file.value())).find("differs between layers"),
            std::string::npos);
}

struct Refusal {
  Keys keys;
  std::vector<std::string> words;
};

Keys with(std::function<void(GgufWriter&)> more) {
  Keys keys;
  keys.more = std::move(more);
  return keys;
}

void expect_refusals(const std::vector<Refusal>& refusals) {
  for (const Refusal& refusal : refusals) {
    const std::string message = message_of(config_of(refusal.keys));
    for (const std::string& word : refusal.words) {
      EXPECT_NE(message.find(word), std::string::npos) << message << "\nlacks: " << word;
    }
  }
}

TEST(Config, ExpertsThatDoNotFitAreRefused) {
  expect_refusals({
      {with([](GgufWriter& w) { w.add("llama.expert_count", 8u); }),
       {"llama.expert_used_count", "missing"}},
      {with([](GgufWriter& w) {
         w.add("llama.expert_count", 8u);
         w.add("llama.expert_used_count", 9u);
       }),
       {"llama.expert_used_count is 9", "1 to 8"}},
      {with([](GgufWriter& w) {
         w.add("llama.expert_count", 8u);
         w.add("llama.expert_used_count", 2u);
         w.add("llama.expert_gating_func", 4u);
       }),
       {"llama.expert_gating_func is 4", "softmax"}},
      {with([](GgufWriter& w) {
         w.add("llama.expert_count", 8u);
         w.add("llama.expert_used_count", 5u);
         w.add("llama.expert_group_count", 4u);
         w.add("llama.expert_group_used_count", 2u);
       }),
       {"llama.expert_group_count is 4 (2 used)", "room for the 5"}},
      {with([](GgufWriter& w) {
         w.add("llama.expert_count", 8u);
         w.add("llama.expert_used_count", 2u);
         w.add("llama.leading_dense_block_count", 2u);
       }),
       {"llama.leading_dense_block_count is 2", "1 layers"}},
      {{.architecture = "gemma3",
        .more =
            [](GgufWriter& w) {
              w.add("gemma3.rope.freq_base", 1e6f);
              w.add("gemma3.expert_count", 8u);
            }},
       {"mixtures of experts", "'gemma3'"}},
  });
}

TEST(Config, WhatCannotBeRunIsRefusedByName) {
  const std::vector<Refusal> refusals = {
      {{.architecture = "mamba"}, {"test.gguf", "'mamba'", "gemma3", "llama", "qwen2"}},
      {{.architecture = "qwen3next"}, {"'qwen3next'", "recurrent state is not cached yet"}},
      {{.layers = 0}, {"llama.block_count is 0", "1 to 4096"}},
      {{.layers = 5000}, {"llama.block_count is 5000", "1 to 4096"}},
      {{.heads = 0}, {"llama.attention.head_count is 0"}},
      {{.heads = 4, .kv_heads = 3}, {"head_count_kv is 3", "divisor of the 4"}},
      {{.heads = 2, .kv_heads = 4}, {"head_count_kv is 4", "1 to 2"}},
      {with([](GgufWriter& w) { w.add("llama.final_logit_softcapping", -30.0f); }), {"above 0"}},
      {with([](GgufWriter& w) { w.add("llama.attention.temperature_scale", 0.1f); }),
       {"scaled by position", "'llama'"}},
      {{.architecture = "gemma2"}, {"gemma2.attention.sliding_window", "missing"}},
      {{.architecture = "qwen3", .epsilon = false},
       {"qwen3.attention.layer_norm_rms_epsilon is missing"}},
      {{.epsilon = false}, {"llama.attention.layer_norm_rms_epsilon is missing"}},
      {{.architecture = "gpt-oss"}, {"gpt-oss.attention.sliding_window is missing"}},
      {{.architecture = "gpt-oss",
        .more = [](GgufWriter& w) { w.add("gpt-oss.attention.sliding_window", 128u); }},
       {"gpt-oss.rope.scaling.type is missing"}},
      {{.architecture = "mistral3",
        .more = [](GgufWriter& w) { w.add("mistral3.attention.temperature_scale", 0.1f); }},
       {"mistral3.attention.temperature_length"}},
      {{.architecture = "gemma4",
        .more = [](GgufWriter& w) { w.add("gemma4.embedding_length_per_layer_input", 256u); }},
       {"embeddings of layers", "gemma4.embedding_length_per_layer_input is 256"}},
      {{.architecture = "gemma4",
        .more = [](GgufWriter& w) { w.add("gemma4.attention.value_length", 2u); }},
       {"gemma4.attention.value_length is 2", "as long as keys"}},
      {{.architecture = "gemma4",
        .more = [](GgufWriter& w) { w.add("gemma4.attention.shared_kv_layers", 1u); }},
       {"gemma4.attention.shared_kv_layers is 1", "keeps its rows"}},
      {{.architecture = "deepseek2"}, {"deepseek2.attention.kv_lora_rank", "missing"}},
      {{.architecture = "deepseek2",
        .more =
            [](GgufWriter& w) {
              w.add("deepseek2.attention.kv_lora_rank", 8u);
              w.add("deepseek2.rope.dimension_count", 4u);
              w.add("deepseek2.attention.key_length_mla", 4u);
            }},
       {"deepseek2.attention.key_length_mla is 4", "more than the 4 dimensions that rotate"}},
      {{.architecture = "deepseek2",
        .more =
            [](GgufWriter& w) {
              w.add("deepseek2.attention.kv_lora_rank", 1022u);
              w.add("deepseek2.rope.dimension_count", 4u);
              w.add("deepseek2.attention.key_length_mla", 8u);
            }},
       {"at most 1024"}},
      {with([](GgufWriter& w) { w.add("llama.attention.clamp_kqv", 8.0f); }), {"clamped"}},
      {with([](GgufWriter& w) { w.add("llama.nextn_predict_layers", 1u); }),
       {"llama.nextn_predict_layers is 1", "fewer than the 1 blocks"}},
      {with([](GgufWriter& w) { w.add("llama.attention.scale", -1.0f); }), {"above 0"}},
      {with([](GgufWriter& w) { w.add("llama.attention.causal", false); }), {"later tokens"}},
      {with([](GgufWriter& w) {
         w.add_array<std::int32_t>("llama.rope.dimension_sections", {8, 12, 12, 0});
       }),
       {"M-RoPE"}},
      {with([](GgufWriter& w) { w.add("llama.rope.dimension_count", 3u); }), {"an even number"}},
      {with([](GgufWriter& w) { w.add("llama.rope.dimension_count", 6u); }), {"1 to 4"}},
      {with([](GgufWriter& w) { w.add("llama.rope.freq_base", -1.0f); }), {"above 0"}},
      {with([](GgufWriter& w) { w.add("llama.rope.scaling.type", "longrope"); }),
       {"llama.rope.scaling.original_context_length"}},
      {with([](GgufWriter& w) { w.add("llama.rope.scaling.type", "su"); }), {"'su'", "longrope"}},
      {with([](GgufWriter& w) { w.add("llama.attention.key_length", 4096u); }), {"1 to 1024"}},
      {with([](GgufWriter& w) { w.add("llama.attention.sliding_window", "wide"); }),
       {"llama.attention.sliding_window"}},
  };
  expect_refusals(refusals);
}

TEST(Weights, EveryTensorIsNeededAndNamedWhenMissing) {
  for (const std::string name :
       {"output_norm.weight", "blk.0.attn_norm.weight", "blk.0.attn_q.weight",
        "blk.0.attn_output.weight", "blk.0.ffn_norm.weight", "blk.0.ffn_down.weight"}) {
    GgufWriter writer;
    add_keys(writer, {});
    add_tensors(writer, name);
    const Loaded loaded = parse(writer);
    const Config config = read_config(loaded.file.value()).value();
    EXPECT_EQ(message_of(load_weights(loaded.file.value(), config, kernels::ref_set())),
              "test.gguf: tensor '" + name + "' is missing");
  }
}

// A part of a model that is left out would change its answers in silence.
TEST(Weights, ATensorThatNobodyReadsIsRefusedByName) {
  for (const std::string name : {"rope_factors_long.weight", "blk.0.attn_sinks.weight",
                                 "blk.1.attn_norm.weight", "output.bias"}) {
    GgufWriter writer;
    add_keys(writer, {});
    add_tensors(writer);
    add_zeros(writer, name, kWidth, 1);
    const Loaded loaded = parse(writer);
    const Config config = read_config(loaded.file.value()).value();
    EXPECT_NE(message_of(load_weights(loaded.file.value(), config, kernels::ref_set()))
                  .find("test.gguf: tensor '" + name + "' is of no use"),
              std::string::npos)
        << name;
  }
}

TEST(Weights, AHeadOfItsOwnIsUsedAndATiedOneIsTheEmbedding) {
  for (const bool own : {false, true}) {
    GgufWriter writer;
    add_keys(writer, {});
    add_tensors(writer);
    if (own) add_zeros(writer, "output.weight", kWidth, kVocabulary);
    const Loaded loaded = parse(writer);
    const Config config = read_config(loaded.file.value()).value();
    const auto weights = load_weights(loaded.file.value(), config, kernels::ref_set());
    ASSERT_TRUE(weights.ok()) << message_of(weights);
    EXPECT_EQ(weights.value().output.data != weights.value().embedding.data, own);
  }
}

TEST(Weights, WrongShapesAndUnreadableTypesAreNamed) {
  GgufWriter shape;
  add_keys(shape, {});
  add_tensors(shape, "blk.0.attn_k.weight");
  add_zeros(shape, "blk.0.attn_k.weight", kWidth, 7);
  const Loaded misshapen = parse(shape);
  const Config config = read_config(misshapen.file.value()).value();
  EXPECT_EQ(message_of(load_weights(misshapen.file.value(), config, kernels::ref_set())),
            "test.gguf: tensor 'blk.0.attn_k.weight' is 7 x 8, expected 4 x 8 (rows x columns)");

  GgufWriter codebook;
  add_keys(codebook, {});
  add_tensors(codebook, "blk.0.ffn_up.weight");
  codebook.add_tensor("blk.0.ffn_up.weight", TensorType::kIQ2_XS, {256, 1}, gguf::Bytes(74));
  const Loaded unreadable = parse(codebook);
  ASSERT_TRUE(unreadable.file.ok()) << unreadable.file.error().message;
  const std::string message =
      message_of(load_weights(unreadable.file.value(), config, kernels::ref_set()));
  EXPECT_NE(message.find("'blk.0.ffn_up.weight'"), std::string::npos) << message;
  EXPECT_NE(message.find("IQ2_XS"), std::string::npos) << message;
}

}  // namespace
}  // namespace pagoda::model
