// A named shape as if it were a model file: its configuration, the type of its random weights, and
// a tokenizer whose words mean nothing. For measuring a server; it answers nonsense.
#pragma once

#include <memory>
#include <string>

#include "base/result.h"
#include "engine/backends/gpu_backend.h"
#include "model/config.h"
#include "text/tokenizer.h"

namespace pagoda::app {

struct RandomModelOptions {
  std::string shape;          // of random_shape_names(); empty: a model file is used
  std::string type = "bf16";  // of the matrices
};

class RandomModel {
 public:
  static Result<std::unique_ptr<RandomModel>> make(const RandomModelOptions& options);

  const model::Config& config() const { return config_; }
  const engine::RandomWeights& weights() const { return weights_; }
  const text::Tokenizer& tokenizer() const { return *tokenizer_; }

 private:
  RandomModel() = default;

  model::Config config_;
  engine::RandomWeights weights_;
  std::unique_ptr<text::Tokenizer> tokenizer_;
};

}  // namespace pagoda::app
