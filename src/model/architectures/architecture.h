// Architectures: what a model does differently from plain llama, each described in a file of its
// own. One that needs no new operation is such a file, its declaration here, a row in
// architecture.cc, for Hugging Face folders a row in hf/family.cc, and a random model in
// tests/data/make_architecture_models.py that oracle_test compares with transformers.
// CONTRIBUTING.md has the whole recipe.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/result.h"
#include "model/config.h"
#include "model/config_reader.h"

namespace pagoda::model {

struct Architecture {
  std::string_view name;  // general.architecture of a file
  // Describes the model in `config`, which holds sizes, the rotation of the file's own keys and
  // full attention in every layer. Reads the keys that this architecture adds.
  Status (*describe)(const ConfigReader& reader, Config& config);
};

// An error names the architectures there are, and why not this one where that is known. `path` is
// the file's.
Result<const Architecture*> find_architecture(std::string_view name, std::string_view path);

Status describe_deepseek2(const ConfigReader& reader, Config& config);
Status describe_exaone4(const ConfigReader& reader, Config& config);
Status describe_gemma2(const ConfigReader& reader, Config& config);
Status describe_gemma3(const ConfigReader& reader, Config& config);
Status describe_gemma4(const ConfigReader& reader, Config& config);
Status describe_glm4(const ConfigReader& reader, Config& config);
Status describe_gpt_oss(const ConfigReader& reader, Config& config);
Status describe_granite(const ConfigReader& reader, Config& config);
Status describe_granitemoe(const ConfigReader& reader, Config& config);
Status describe_llama(const ConfigReader& reader, Config& config);
Status describe_mistral3(const ConfigReader& reader, Config& config);
Status describe_olmo2(const ConfigReader& reader, Config& config);
Status describe_phi3(const ConfigReader& reader, Config& config);
Status describe_qwen2(const ConfigReader& reader, Config& config);
Status describe_qwen2moe(const ConfigReader& reader, Config& config);
Status describe_qwen3(const ConfigReader& reader, Config& config);
Status describe_qwen3moe(const ConfigReader& reader, Config& config);
Status describe_smollm3(const ConfigReader& reader, Config& config);

// Several descriptions share the functions below.

// Layer i sees the last attention.sliding_window keys unless (i + 1) % pattern == 0, where the
// pattern is attention.sliding_window_pattern: a number, `pattern` where the file has none, or a
// flag for each layer. Without a window, and with pattern 1, all layers see all keys.
Status read_windows(const ConfigReader& reader, std::uint32_t pattern, Config& config);

// Does the file state a window? 0 is none.
bool has_window(const ConfigReader& reader);

// Does the file state experts? 0 is none.
bool has_experts(const ConfigReader& reader);

// Reads how many experts there are and how tokens choose them. `router` says how the architecture
// scores and weighs where the file does not.
Status read_experts(const ConfigReader& reader, kernels::Router router, Config& config);

// Which rope layers take that see all keys, and those with a window: indices, or kNoRope.
struct RopesByWindow {
  std::uint8_t full;
  std::uint8_t windowed;
};
// Every layer takes the rope of its kind; the windows must be known.
void choose_ropes(const RopesByWindow& ropes, Config& config);

// Rotates pairs (i, i + dims / 2) in every rope.
void rotate_halves(Config& config);

}  // namespace pagoda::model
