#include "model/latent_attention.h"

#include <algorithm>

namespace pagoda::model {

LatentAttention::LatentAttention(const Config& config, std::uint32_t heads,
                                 const kernels::KernelSet& kernels, MatmulRunner& matmuls,
                                 std::size_t rows_max)
    : config_(config),
      heads_(heads),
      kernels_(kernels),
      matmuls_(matmuls),
      rope_dims_(config.key_dim - config.latent.rank),
      query_dim_(config.latent.query_dim(rope_dims_)),
      part_bytes_(0) {
  const LatentConfig& latent = config.latent;
  const auto activations = [&](std::size_t columns) {
    return kernels::activation_bytes(kernels.numerics, columns, rows_max);
  };
  if (latent.query_rank > 0) {
    query_latents_.resize(rows_max, latent.query_rank);
    query_normed_.resize(activations(latent.query_rank));
  }
  raw_queries_.resize(rows_max, std::size_t{heads} * query_dim_);
  part_bytes_ = std::max(activations(latent.plain_dim), activations(latent.rank));
  parts_.resize(heads * part_bytes_);
  outputs_.resize(rows_max, std::size_t{heads} * latent.value_dim);
  products_.reserve(heads);
}

void LatentAttention::project_down(const LayerWeights& layer, const std::byte* x, std::size_t rows,
                                   float* keys) {
  const LatentWeights& latent = layer.latent;
  const Product down = {&latent.down, x, rows, keys, config_.key_dim};
  const auto to_queries = [&](const std::byte* from) {
    return Product{&layer.query, from, rows, raw_queries_.row(0), raw_queries_.stride()};
  };
  if (config_.latent.query_rank == 0) {
    const Product both[] = {down, to_queries(x)};
    return matmuls_.run(both);
  }
  const Product both[] = {
      down, {&latent.query_down, x, rows, query_latents_.row(0), query_latents_.stride()}};
  matmuls_.run(both);
  matmuls_.for_rows(rows, [&](WorkRange range) {
    for (std::size_t row = range.begin; row < range.end; ++row) {
      float* const values = query_latents_.row(row);
      const std::size_t width = config_.latent.query_rank;
      kernels_.rms_norm(values, latent.query_norm.data(), LatentConfig::kNormEpsilon, width,
                        values);
      kernels_.pack_activations(values, width, query_normed_.data(), row);
    }
  });
  const Product queries = to_queries(query_normed_.data());
  matmuls_.run({&queries, 1});
}

void LatentAttention::finish_key(const LatentWeights& latent, const kernels::RopeRow& rope,
                                 float* key) const {
  const std::size_t rank = config_.latent.rank;
  kernels_.rms_norm(key, latent.norm.data(), LatentConfig::kNormEpsilon, rank, key);
  kernels_.rope(key + rank, rope);
}

void LatentAttention::split_queries(std::size_t row, const kernels::RopeRow& rope, float* queries) {
  for (std::uint32_t head = 0; head < heads_; ++head) {
    kernels_.pack_activations(raw_queries_.row(row) + std::size_t{head} * query_dim_,
                              config_.latent.plain_dim, head_part(head), row);
  }
  rotate_queries(row, rope, queries);
}

void LatentAttention::rotate_queries(std::size_t row, const kernels::RopeRow& rope,
                                     float* queries) const {
  for (std::uint32_t head = 0; head < heads_; ++head) {
    const float* const raw = raw_queries_.row(row) + std::size_t{head} * query_dim_;
    float* const rotated = queries + std::size_t{head} * config_.key_dim + config_.latent.rank;
    std::copy_n(raw + config_.latent.plain_dim, rope_dims_, rotated);
    kernels_.rope(rotated, rope);
  }
}

void LatentAttention::absorb_queries(const LatentWeights& latent, std::size_t rows,
                                     float* queries) {
  products_.clear();
  for (std::uint32_t head = 0; head < heads_; ++head) {
    products_.push_back({&latent.key_up[head], head_part(head), rows,
                         queries + std::size_t{head} * config_.key_dim,
                         std::size_t{heads_} * config_.key_dim});
  }
  matmuls_.run(products_);
}

const FloatRows& LatentAttention::raise(const LatentWeights& latent, const float* attended,
                                        std::size_t rows) {
  const std::size_t rank = config_.latent.rank;
  const std::size_t value_dim = config_.latent.value_dim;
  matmuls_.for_rows(rows, [&](WorkRange range) {
    for (std::size_t row = range.begin; row < range.end; ++row) {
      for (std::uint32_t head = 0; head < heads_; ++head) {
        kernels_.pack_activations(attended + (row * heads_ + head) * rank, rank, head_part(head),
                                  row);
      }
    }
  });
  products_.clear();
  for (std::uint32_t head = 0; head < heads_; ++head) {
    products_.push_back({&latent.value_up[head], head_part(head), rows,
                         outputs_.row(0) + head * value_dim, outputs_.stride()});
  }
  matmuls_.run(products_);
  return outputs_;
}

}  // namespace pagoda::model
