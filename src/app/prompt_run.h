// One prompt, completed in the terminal.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "app/device_choice.h"
#include "app/loaded_model.h"
#include "app/quantised_model.h"
#include "app/sampling_defaults.h"
#include "base/result.h"
#include "base/thread_pool.h"
#include "engine/finish_reason.h"
#include "hf/overrides.h"
#include "kv/kv_policy.h"
#include "model/kv_cache_dtype.h"
#include "speculate/options.h"

namespace pagoda::app {

struct PromptRunOptions {
  std::string model = default_model_path();
  std::string prompt;
  std::uint32_t tokens_max = 256;
  std::string tokenizer;
  hf::ConfigOverrides overrides;
  QuantizationOptions quantization;
  GenerationConfig generation;
  SamplingFields given;               // above those that the model recommends
  std::optional<std::uint64_t> seed;  // unset: a fresh one
  bool no_kv_cache = false;           // computes the whole sequence again for every token
  bool special = false;               // recognises special tokens in the prompt
  bool ignore_eos = false;
  std::uint32_t threads = static_cast<std::uint32_t>(usable_cores());
  std::uint64_t max_model_len = 0;  // 0: the model's own
  model::KvCacheDtype kv_cache_dtype;
  kv::KvPolicy kv_policy;
  std::uint32_t block_size = 16;
  std::optional<std::uint32_t> batched_tokens_max;  // unset: chosen by device
  DeviceOptions device;
  speculate::SpeculationOptions speculation;
};

// Loads the model and writes text to stdout as it comes, then a line of figures to stderr. Ctrl-C
// ends the output, not the process. Returns why the output ended.
Result<engine::FinishReason> run_prompt(const PromptRunOptions& options);

}  // namespace pagoda::app
