// A seeded model without a file: any shape, matrices of one type, with or without QK norm, dense or
// a mixture of experts. A ModelCase is such a model or one read from a file, perhaps quantised.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <ostream>
#include <string>

#include "model/config.h"
#include "model/quantised_copy.h"
#include "model/random_matrix.h"
#include "model/test_model.h"
#include "model/weights.h"

namespace pagoda::model {

// The rows of this token are not finite in a poisoned model.
inline constexpr TokenId kPoison = TokenId(5);

struct ModelShape {
  std::uint32_t layers = 2;
  std::uint32_t width = 256;
  std::uint32_t hidden_width = 384;
  std::uint32_t heads = 4;
  std::uint32_t kv_heads = 2;
  std::uint32_t head_dim = 64;
  std::uint32_t vocabulary = 512;
  std::uint32_t window = 0;  // for every other layer
  bool qk_norm = false;
  bool sinks = false;
  float score_cap = 0;
  // Layers keep latents (MLA) of that many values and a rotated key of `head_dim`, whatever
  // `kv_heads` says; 0: keys and values of heads.
  std::uint32_t latent_rank = 0;
  kernels::Router router = {};     // of no experts: layers are dense
  std::uint32_t expert_width = 0;  // hidden width of an expert
  float output_scale = 1;          // behind every layer
  bool poisoned = false;           // the embedding of kPoison is infinite; needs bf16 weights
  gguf::TensorType type = gguf::TensorType::kBF16;
};

// A SeededModel does not move, because the weights point into it.
class SeededModel {
 public:
  explicit SeededModel(const ModelShape& shape);
  SeededModel(const SeededModel&) = delete;
  SeededModel& operator=(const SeededModel&) = delete;

  const Config& config() const { return config_; }
  const Weights& weights() const { return weights_; }
  operator ModelParts() const { return {config_, weights_}; }

 private:
  kernels::WeightMatrix matrix(std::size_t rows, std::size_t columns);
  void add_projections(const ModelShape& shape, LayerWeights& layer);
  void add_latent_projections(const ModelShape& shape, LayerWeights& layer);
  FeedForwardWeights network(std::size_t hidden_width, std::size_t width);

  gguf::TensorType type_;
  std::deque<RandomMatrix> matrices_;
  Config config_;
  Weights weights_;
};

// Two layers that are quick to compute: with QK norm as in qwen3, else with a window.
inline ModelShape small_shape(gguf::TensorType type, bool qk_norm) {
  return {.width = 256,  // the length of a block of quantised weights
          .hidden_width = 256,
          .heads = 4,
          .kv_heads = 2,
          .head_dim = 64,
          .vocabulary = 96,
          .window = qk_norm ? 0u : 50u,
          .qk_norm = qk_norm,
          .type = type};
}

// The same with latents: rows of 64 values, whose first 32 are values, so that int4 keeps them.
inline ModelShape latent_shape() {
  ModelShape shape = small_shape(gguf::TensorType::kBF16, true);
  shape.qk_norm = false;
  shape.head_dim = 32;
  shape.latent_rank = 32;
  return shape;
}

// A file of tests/data/models, or a seeded model.
struct ModelCase {
  std::string name;
  std::optional<ModelShape> shape = {};
  std::optional<gguf::TensorType> quantised = {};  // of a file: its matrices become this type

  std::string title() const {
    return quantised ? name + "_" + std::string(gguf::tensor_type_info(*quantised).name) : name;
  }
};
inline void PrintTo(const ModelCase& c, std::ostream* out) { *out << c.title(); }

class AnyModel {
 public:
  explicit AnyModel(const ModelCase& c) {
    if (c.shape) {
      seeded_.emplace(*c.shape);
    } else if (c.quantised) {
      read_.emplace(QuantisedCopy(c.name + ".gguf", *c.quantised).path());
    } else {
      read_.emplace(test_model_path(c.name + ".gguf"));
    }
  }
  ModelParts parts() const { return seeded_ ? ModelParts(*seeded_) : ModelParts(*read_); }

 private:
  std::optional<TestModel> read_;
  std::optional<SeededModel> seeded_;
};

}  // namespace pagoda::model
