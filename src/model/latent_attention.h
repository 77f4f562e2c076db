// The projections around latent attention (LatentConfig): queries into the latents' space, the row
// that a token keeps, and back to the width of heads. Attention itself is that of one KV head.
//
// Thread rule: as Decoder.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "model/config.h"
#include "model/float_rows.h"
#include "model/matmul_runner.h"
#include "model/weights.h"

namespace pagoda::model {

class LatentAttention {
 public:
  // All must outlive the object. `rows_max` rows at most are computed at once, of `heads` heads:
  // those that the layers' weights have.
  LatentAttention(const Config& config, std::uint32_t heads, const kernels::KernelSet& kernels,
                  MatmulRunner& matmuls, std::size_t rows_max);

  // Computes, of rows of packed activations x, the rows to keep, keys [rows, key_dim], and the
  // queries [rows, heads, key_dim]; both are rotated by rope_of(row).
  template <class RopeOf>
  void project(const LayerWeights& layer, const std::byte* x, std::size_t rows, RopeOf rope_of,
               float* queries, float* keys) {
    project_down(layer, x, rows, keys);
    matmuls_.for_rows(rows, [&](WorkRange range) {
      for (std::size_t row = range.begin; row < range.end; ++row) {
        const kernels::RopeRow rope = rope_of(row);
        finish_key(layer.latent, rope, keys + row * config_.key_dim);
        split_queries(row, rope, queries + row * heads_ * config_.key_dim);
      }
    });
    absorb_queries(layer.latent, rows, queries);
  }

  // Rotates the queries [heads, key_dim] of a row of the last project() by `rope` instead.
  void rotate_queries(std::size_t row, const kernels::RopeRow& rope, float* queries) const;

  // Returns the outputs of all heads, [rows, heads * value_dim], which are good until the next
  // call. `attended`: [rows, heads, rank].
  const FloatRows& raise(const LatentWeights& latent, const float* attended, std::size_t rows);

  // Returns the bytes of activations.
  std::size_t workspace_bytes() const {
    return query_latents_.bytes() + query_normed_.size() + raw_queries_.bytes() + parts_.size() +
           outputs_.bytes();
  }

 private:
  void project_down(const LayerWeights& layer, const std::byte* x, std::size_t rows, float* keys);
  void finish_key(const LatentWeights& latent, const kernels::RopeRow& rope, float* key) const;
  // Puts the rotated part of every head where its query has it, and packs the other.
  void split_queries(std::size_t row, const kernels::RopeRow& rope, float* queries);
  void absorb_queries(const LatentWeights& latent, std::size_t rows, float* queries);
  std::byte* head_part(std::size_t head) { return parts_.data() + head * part_bytes_; }

  const Config& config_;
  std::uint32_t heads_;
  const kernels::KernelSet& kernels_;
  MatmulRunner& matmuls_;
  std::uint32_t rope_dims_;
  std::uint32_t query_dim_;             // of a head
  FloatRows query_latents_;             // [rows, query_rank]
  LargeArray<std::byte> query_normed_;  // packed activations of query_rank
  FloatRows raw_queries_;               // [rows, heads * query_dim]
  LargeArray<std::byte> parts_;         // [heads] packed activations of plain_dim or of rank
  std::size_t part_bytes_;
  FloatRows outputs_;  // [rows, heads * value_dim]
  std::vector<Product> products_;
};

}  // namespace pagoda::model
