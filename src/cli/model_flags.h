// Flags of commands that load a model: which one, and what of its recommendations is used.
#pragma once

#include <string>

#include "app/quantised_model.h"
#include "app/sampling_defaults.h"
#include "base/result.h"
#include "cli/flags.h"
#include "hf/overrides.h"

namespace pagoda::cli {

// The model, as a word of its own or behind -m or --model; `model` holds the default.
void add_model_option(const CommandSpec& command, std::string& model);

// vLLM's --revision, beside a name.
void add_revision_option(const CommandSpec& command, std::string& revision);

// vLLM's --tokenizer.
void add_tokenizer_option(const CommandSpec& command, std::string& tokenizer);

// vLLM's --hf-overrides and --rope-scaling.
void add_override_options(const CommandSpec& command, hf::ConfigOverrides& overrides);

// vLLM's --quantization and --dtype, and how much of what they make is kept.
void add_quantization_options(const CommandSpec& command, app::QuantizationOptions& options);

// vLLM's --generation-config and --override-generation-config.
void add_generation_options(const CommandSpec& command, app::GenerationConfig& generation);

// --top-k, --min-p, --repeat-penalty: which tokens may be drawn. What is not given is the model's.
void add_token_choice_options(const CommandSpec& command, app::SamplingFields& fields);

// vLLM's --trust-remote-code, which has nothing to do here.
void add_trust_option(const CommandSpec& command, bool& trusts);

}  // namespace pagoda::cli
