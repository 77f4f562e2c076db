// A model file opened and ready to run: file, configuration, weights, tokenizer.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "app/quantised_model.h"
#include "base/result.h"
#include "gguf/file.h"
#include "hf/overrides.h"
#include "kernels/ops.h"
#include "model/config.h"
#include "model/packed_weights.h"
#include "model/weights.h"
#include "text/chat_template.h"
#include "text/tokenizer.h"

namespace pagoda::app {

// Where the set-up scripts put the default model:
// ${XDG_CACHE_HOME:-$HOME/.cache}/pagoda/models/SmolLM2-135M-Instruct.Q4_1.gguf
std::string default_model_path();

// Returns the warning about a context that is longer than the one the model was trained on.
std::string beyond_training(std::uint64_t context, std::uint64_t trained);

// Opens a model that is given as a file, a folder or a name (model_finder.h). The error about one
// that is not there says where models come from.
Result<gguf::File> open_model_file(const std::string& word,
                                   const hf::ConfigOverrides& overrides = {});

struct ModelLoadOptions {
  // Another model, whose tokenizer and chat template are used; empty: the model's own.
  std::string tokenizer = {};
  std::uint64_t context_tokens = 0;  // that are served; 0: as trained
  hf::ConfigOverrides overrides = {};
  QuantizationOptions quantization = {};
};

// Opens a model's file as it is computed: with overrides, quantised or rounded where the options
// say.
Result<gguf::File> open_loadable(const std::string& word, const kernels::KernelSet& kernels,
                                 const ModelLoadOptions& options);

// Owns everything a decoder refers to; does not move, so that references into it stay good.
class LoadedModel {
 public:
  // Loads a file, a folder or a name. Warnings about the file go to stderr.
  static Result<std::unique_ptr<LoadedModel>> load(const std::string& word,
                                                   const kernels::KernelSet& kernels,
                                                   const ModelLoadOptions& options = {});

  const gguf::File& file() const { return file_; }
  // Returns what the model was loaded by.
  const std::string& source() const { return source_; }
  const ModelLoadOptions& load_options() const { return load_options_; }
  const model::Config& config() const { return config_; }
  const model::Weights& weights() const { return weights_; }
  const text::Tokenizer& tokenizer() const { return *tokenizer_; }
  // Returns the template of the file that the tokenizer comes from, or else the model's.
  Result<text::ChatTemplate> chat_template() const;
  // A bar while weights are packed; once all are, the file's pages go back to the system.
  model::PackProgress pack_progress() const;

 private:
  LoadedModel(gguf::File file, model::Config config, model::Weights weights,
              std::optional<gguf::File> tokenizer_file, std::unique_ptr<text::Tokenizer> tokenizer);

  std::string source_;
  ModelLoadOptions load_options_;
  gguf::File file_;
  std::optional<gguf::File> tokenizer_file_;
  model::Config config_;
  model::Weights weights_;
  std::unique_ptr<text::Tokenizer> tokenizer_;
};

}  // namespace pagoda::app
