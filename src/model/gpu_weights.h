// A model's weights on the GPU, packed as its kernels read them: query, key and value as one matrix
// where their types agree, gate and up interleaved by eight rows.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/result.h"
#include "base/thread_pool.h"
#include "device/device.h"
#include "kernels/cuda/ops.h"
#include "model/config.h"
#include "model/packed_weights.h"
#include "model/upload_log.h"
#include "model/weights.h"

namespace pagoda::model {

struct GpuProjection {
  kernels::cuda::PackedMatrix weight;
  const float* bias = nullptr;
  std::uint32_t column = 0;  // the column at which its outputs begin in a row
};

// Rows of gate and up as one matrix: zeros after the last of both fill the last chunk of outputs
// (Epilogue::kSwiGlu).
constexpr std::size_t gate_up_rows(std::size_t hidden_width) {
  return std::size_t{2} * kernels::cuda::chunks_of(hidden_width) * kernels::cuda::kChunkColumns;
}

// A gated feed-forward network: gate and up as one matrix.
struct GpuNetwork {
  GpuProjection gate_up;
  GpuProjection down;
};

// Several matrices of one shape, one after the other, each with a whole number of row tiles.
struct GpuMatrices {
  kernels::cuda::PackedMatrix first;
  std::size_t stride = 0;       // bytes
  const float* bias = nullptr;  // [matrices, bias_stride]
  std::size_t bias_stride = 0;
};

// The experts of a layer. Vectors and norms are nullptr where there are none.
struct GpuExperts {
  GpuProjection router;
  const float* selection_bias = nullptr;
  const float* weight_scales = nullptr;
  GpuMatrices gate_up;
  GpuMatrices down;
  GpuProjection shared_gate;
  const float* router_norm = nullptr;
  const float* input_norm = nullptr;
  const float* output_norm = nullptr;
  const float* shared_output_norm = nullptr;
};

// The weights of a layer with latents (LatentConfig).
struct GpuLatent {
  GpuProjection query_down;  // without rows: queries have no latent
  const float* query_norm = nullptr;
  GpuProjection query;
  GpuProjection down;
  const float* norm = nullptr;
  GpuMatrices key_up;    // one matrix a head
  GpuMatrices value_up;  // the same
};

// Norms are nullptr where the layer has none.
struct GpuLayer {
  const float* attention_norm = nullptr;
  std::vector<GpuProjection> qkv;  // one, or three of different types; of latents none
  GpuLatent latent;
  const float* query_norm = nullptr;  // [key_dim], or of all heads
  const float* key_norm = nullptr;
  GpuProjection attention_output;
  const float* attention_output_norm = nullptr;
  const float* sinks = nullptr;  // [heads], or none
  const float* feed_forward_norm = nullptr;
  GpuNetwork feed_forward;  // what every token uses: a dense layer, or the shared expert
  GpuExperts experts;
  const float* feed_forward_output_norm = nullptr;
  float output_scale = 1;  // multiplies the residual stream behind the layer
};

struct UploadOptions {
  PackProgress progress = {};
  // The most host memory that packed weights take on their way; a row tile where that is more.
  std::size_t staging_bytes = std::size_t{256} << 20;
};

class GpuWeights {
 public:
  // Returns the bytes that upload() takes of device memory, without a device: formats follow from
  // the types of tensors. The same errors.
  static Result<std::uint64_t> packed_bytes(const Weights& weights);
  // An error names what the GPU cannot hold or compute with.
  static Result<GpuWeights> upload(const Weights& weights, ThreadPool& pool,
                                   const UploadOptions& options = {});
  // Makes seeded random weights on the GPU, with the variance that keeps the size of activations. A
  // model whose experts have norms of their own is refused.
  static Result<GpuWeights> random(const Config& config, kernels::cuda::WeightFormat format,
                                   std::uint64_t seed);

  const std::vector<GpuLayer>& layers() const { return layers_; }
  const kernels::cuda::Bf16* embedding() const { return embedding_; }
  const float* output_norm() const { return output_norm_; }
  const GpuProjection& output() const { return output_; }
  std::uint64_t bytes() const { return bytes_; }
  UploadLog& uploads() { return uploads_; }
  const UploadLog& uploads() const { return uploads_; }

 private:
  class Uploader;
  class RandomMaker;

  Status place(const Weights& weights, Uploader& uploader);
  Result<std::byte*> take(std::uint64_t bytes);

  std::vector<device::Buffer> buffers_;
  std::uint64_t bytes_ = 0;
  UploadLog uploads_;
  std::vector<GpuLayer> layers_;
  const kernels::cuda::Bf16* embedding_ = nullptr;  // [vocabulary, width]
  const float* output_norm_ = nullptr;
  GpuProjection output_;
};

}  // namespace pagoda::model
