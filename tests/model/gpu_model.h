// A way to run sequences through a GPU under every condition that must not matter.
#pragma once

#include <memory>
#include <vector>

#include "kernels/cuda/attention/cached_row.h"
#include "kernels/cuda/random_matrix.h"
#include "model/gpu_decoder.h"
#include "model/seeded_model.h"
#include "model/test_model.h"

namespace pagoda::gpu_test {

using model::kPoison;
using model::ModelShape;
using model::SeededModel;

struct GpuConditions {
  std::uint32_t chunk = 0;  // tokens of a sequence per step; 0: all at once
  model::KvCacheDtype kv_cache_dtype = {};
  kv::memory::AttentionSpec policy = {};
  std::uint64_t context = 0;  // of the decoder; 0: of the longest sequence
  std::uint32_t block_tokens = 16;
  std::uint64_t shuffle_seed = 0;
  bool graphs = true;
  std::size_t staging_bytes = model::UploadOptions{}.staging_bytes;
  // Takes the experts that the rows of the last step chose in the last layer, [rows, chosen].
  std::vector<kernels::ChosenExpert>* chosen = nullptr;
};

// The logits of every position of every sequence, as model::run_sequences().
std::vector<model::Logits> run_on_gpu(const model::Config& config, const model::Weights& weights,
                                      const GpuConditions& conditions,
                                      const std::vector<model::Tokens>& sequences);

// The same on the CPU in fp32.
model::Logits run_on_cpu(const model::Config& config, const model::Weights& weights,
                         const model::Tokens& tokens, kv::memory::AttentionSpec policy = {});

}  // namespace pagoda::gpu_test
