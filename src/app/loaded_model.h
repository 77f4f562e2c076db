// A model file opened and ready to run: file, configuration, weights, tokenizer.
#pragma once

#include <memory>
#include <string>

#include "base/result.h"
#include "gguf/file.h"
#include "kernels/ops.h"
#include "model/config.h"
#include "model/packed_weights.h"
#include "model/weights.h"
#include "text/tokenizer.h"

namespace pagoda::app {

// Where the set-up scripts put the default model:
// ${XDG_CACHE_HOME:-$HOME/.cache}/pagoda/models/SmolLM2-135M-Instruct.Q4_1.gguf
std::string default_model_path();

// Opens a model: a GGUF file, or a folder with config.json and *.safetensors. The error about one
// that is not there says where models come from.
Result<gguf::File> open_model_file(const std::string& path);

// Owns everything a decoder refers to; does not move, so that references into it stay good.
class LoadedModel {
 public:
  // Warnings about the file go to stderr.
  static Result<std::unique_ptr<LoadedModel>> load(const std::string& path,
                                                   const kernels::KernelSet& kernels);

  const gguf::File& file() const { return file_; }
  const model::Config& config() const { return config_; }
  const model::Weights& weights() const { return weights_; }
  const text::Tokenizer& tokenizer() const { return *tokenizer_; }
  // A bar while weights are packed; once all are, the file's pages go back to the system.
  model::PackProgress pack_progress() const;

 private:
  LoadedModel(gguf::File file, model::Config config, model::Weights weights,
              std::unique_ptr<text::Tokenizer> tokenizer);

  gguf::File file_;
  model::Config config_;
  model::Weights weights_;
  std::unique_ptr<text::Tokenizer> tokenizer_;
};

}  // namespace pagoda::app
