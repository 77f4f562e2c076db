// The sampling that a model recommends, for requests that are silent about it: what its file says
// under general.sampling.*, or what its authors say of a model whose file is silent.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "engine/sampling_params.h"
#include "gguf/metadata.h"

namespace pagoda::app {

// Fields of a request that somebody has set.
struct SamplingFields {
  std::optional<double> temperature;
  std::optional<std::uint32_t> top_k;
  std::optional<double> top_p;
  std::optional<double> min_p;
  std::optional<double> repetition_penalty;

  bool any() const;
  // Sets what is set; the rest of `params` stays.
  void apply_to(engine::SamplingParams& params) const;
  // By their names in the API, for people and for JSON.
  std::vector<std::pair<std::string, double>> list() const;
};

// "temperature 0.2, top_p 0.9".
std::string sampling_text(const SamplingFields& fields);

// vLLM's --generation-config and --override-generation-config.
struct GenerationConfig {
  bool from_model = true;
  std::string override_json;  // {"temperature": 0.5}, above what the model says; empty: none
};

struct SamplingDefaults {
  SamplingFields fields;
  std::string source;                 // where they come from; empty: there are none
  std::vector<std::string> warnings;  // values of the file that are left out

  // Where a model has defaults they stand above OpenAI's (temperature 1, everything else off);
  // where it has none, above `otherwise`.
  engine::SamplingParams params(const engine::SamplingParams& otherwise) const;
};

inline constexpr double kOpenAiTemperature = 1.0;

// Reads general.sampling.* of a file. Values out of range are left out, with a warning.
SamplingDefaults file_sampling(const gguf::Metadata& metadata);

// file_sampling, or the row of a model that is known to want other values than OpenAI's.
SamplingDefaults model_sampling(const gguf::Metadata& metadata);

// Puts `config` above what a model says. Fails where the override is no JSON object of known
// fields.
Result<SamplingDefaults> with_generation_config(SamplingDefaults of_model,
                                                const GenerationConfig& config);

}  // namespace pagoda::app
