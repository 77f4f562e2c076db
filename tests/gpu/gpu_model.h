// A seeded model for a GPU and a CPU alike, and a way to run sequences through the GPU under every
// condition that must not matter.
#pragma once

#include <deque>
#include <memory>
#include <vector>

#include "gpu/random_matrix.h"
#include "model/gpu_decoder.h"
#include "model/test_model.h"

namespace pagoda::gpu_test {

// A token whose rows are not finite in a poisoned model.
inline constexpr TokenId kPoison = TokenId(5);

struct ModelShape {
  std::uint32_t layers = 2;
  std::uint32_t width = 256;
  std::uint32_t hidden_width = 384;
  std::uint32_t heads = 4;
  std::uint32_t kv_heads = 2;
  std::uint32_t head_dim = 64;
  std::uint32_t vocabulary = 512;
  std::uint32_t window = 0;  // of every other layer
  bool head_norms = false;
  bool poisoned = false;  // the embedding of kPoison is infinite; of bf16 weights
  gguf::TensorType type = gguf::TensorType::kBF16;
};

// Does not move: the weights point into it.
class SeededModel {
 public:
  explicit SeededModel(const ModelShape& shape);
  SeededModel(const SeededModel&) = delete;
  SeededModel& operator=(const SeededModel&) = delete;

  const model::Config& config() const { return config_; }
  const model::Weights& weights() const { return weights_; }

 private:
  kernels::WeightMatrix matrix(std::size_t rows, std::size_t columns);

  gguf::TensorType type_;
  std::deque<RandomMatrix> matrices_;
  model::Config config_;
  model::Weights weights_;
};

inline constexpr kv::memory::Element kGpuElements[] = {
    kv::memory::Element::kBF16, kv::memory::Element::kF16, kv::memory::Element::kE4M3};
std::string name_of(kv::memory::Element element);

struct GpuConditions {
  std::uint32_t chunk = 0;  // tokens of a sequence per step; 0: all at once
  kv::memory::Element element = kv::memory::Element::kBF16;
  std::uint32_t block_tokens = 16;
  std::uint64_t shuffle_seed = 0;
  bool graphs = true;
};

// The logits of every position of every sequence, as model::run_sequences().
std::vector<model::Logits> run_on_gpu(const model::Config& config, const model::Weights& weights,
                                      const GpuConditions& conditions,
                                      const std::vector<model::Tokens>& sequences);

// The same on the CPU in fp32.
model::Logits run_on_cpu(const model::Config& config, const model::Weights& weights,
                         const model::Tokens& tokens);

}  // namespace pagoda::gpu_test
