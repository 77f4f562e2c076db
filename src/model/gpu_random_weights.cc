// Weights that are made on the GPU, for measurements without a model file.
#include <cmath>
#include <span>
#include <utility>

#include "model/gpu_weights.h"

namespace pagoda::model {

using kernels::cuda::WeightFormat;

class GpuWeights::RandomMaker {
 public:
  RandomMaker(GpuWeights& weights, device::Stream stream, const Config& config, WeightFormat format,
              std::uint64_t seed)
      : weights_(weights),
        stream_(std::move(stream)),
        config_(config),
        // Files that hold MXFP4 hold experts so.
        format_(format == WeightFormat::kFp4 ? WeightFormat::kBf16 : format),
        expert_format_(format),
        seed_(seed) {}

  Result<GpuLayer> layer(std::uint32_t index) {
    const bool inputs = config_.branch_norms != BranchNorms::kOutput;
    const bool outputs = config_.branch_norms != BranchNorms::kInput;
    const std::uint32_t width = config_.width;
    GpuLayer made;
    ASSIGN_OR_RETURN(made.attention_norm, ones(inputs ? width : 0));
    ASSIGN_OR_RETURN(made.attention_output_norm, ones(outputs ? width : 0));
    ASSIGN_OR_RETURN(made.feed_forward_norm, ones(inputs ? width : 0));
    ASSIGN_OR_RETURN(made.feed_forward_output_norm, ones(outputs ? width : 0));
    ASSIGN_OR_RETURN(made.sinks, ones(config_.has_sinks ? config_.heads : 0));
    RETURN_IF_ERROR(config_.latent.rank > 0 ? add_latents(made) : add_heads(index, made));
    ASSIGN_OR_RETURN(made.attention_output, projection(width, config_.mixed_width(index)));
    if (config_.has_experts(index)) {
      ASSIGN_OR_RETURN(made.experts, experts());
    }
    if (const std::uint32_t hidden = config_.hidden_width_of(index); hidden > 0) {
      ASSIGN_OR_RETURN(made.feed_forward.gate_up, projection(gate_up_rows(hidden), width));
      ASSIGN_OR_RETURN(made.feed_forward.down, projection(width, hidden));
    }
    return made;
  }

  Result<GpuProjection> projection(std::size_t rows, std::size_t columns) {
    ASSIGN_OR_RETURN(const GpuMatrices one, matrices(format_, 1, rows, columns));
    return GpuProjection{one.first};
  }

  Result<const kernels::cuda::Bf16*> table(std::size_t values) {
    ASSIGN_OR_RETURN(std::byte* const place, weights_.take(values * 2));
    auto* const bits = reinterpret_cast<kernels::cuda::Bf16*>(place);
    kernels::cuda::launch_random_bf16(bits, values, 1.0f, seed_++, stream_.handle());
    RETURN_IF_ERROR(weights_.uploads_.record(stream_, place, values * 2, "a random embedding"));
    return static_cast<const kernels::cuda::Bf16*>(bits);
  }

  Result<const float*> ones(std::size_t count) {
    if (count == 0) return static_cast<const float*>(nullptr);
    const std::vector<float> values(count, 1.0f);
    ASSIGN_OR_RETURN(std::byte* const place, weights_.take(count * sizeof(float)));
    RETURN_IF_ERROR(weights_.uploads_.upload(stream_, std::as_bytes(std::span(values)), place,
                                             "a vector of weights"));
    return reinterpret_cast<const float*>(place);
  }

 private:
  Result<GpuMatrices> matrices(WeightFormat format, std::size_t count, std::size_t rows,
                               std::size_t columns) {
    const std::size_t each = kernels::cuda::packed_bytes(format, rows, columns);
    const std::size_t bytes = count * each;
    ASSIGN_OR_RETURN(std::byte* const place, weights_.take(bytes));
    kernels::cuda::launch_random_fill({.format = format,
                                       .data = place,
                                       .chunks = bytes / kernels::cuda::chunk_bytes(format),
                                       .bound = std::sqrt(3.0f / static_cast<float>(columns)),
                                       .seed = seed_++},
                                      stream_.handle());
    RETURN_IF_ERROR(weights_.uploads_.record(stream_, place, bytes, "a random matrix"));
    return GpuMatrices{
        {format, place, static_cast<std::uint32_t>(rows), static_cast<std::uint32_t>(columns)},
        each};
  }

  Status add_heads(std::uint32_t index, GpuLayer& to) {
    const HeadShape heads = config_.heads_of(index);
    const std::uint32_t kv_heads = config_.own_kv_heads(index);
    const std::size_t all = std::size_t{config_.heads + 2 * kv_heads} * heads.key_dim;
    ASSIGN_OR_RETURN(const GpuProjection qkv, projection(all, config_.width));
    to.qkv.push_back(qkv);
    const bool each = config_.qk_norm == QkNormSpan::kHead;
    const bool normed = config_.qk_norm != QkNormSpan::kNone;
    const std::size_t dim = normed ? heads.key_dim : 0;
    ASSIGN_OR_RETURN(to.query_norm, ones(dim * (each ? 1 : config_.heads)));
    ASSIGN_OR_RETURN(to.key_norm, ones(kv_heads == 0 ? 0 : dim * (each ? 1 : kv_heads)));
    return ok_status();
  }

  Status add_latents(GpuLayer& to) {
    const LatentConfig& latent = config_.latent;
    const std::size_t heads = config_.heads;
    const std::size_t queries = heads * latent.query_dim(config_.key_dim - latent.rank);
    if (latent.query_rank > 0) {
      ASSIGN_OR_RETURN(to.latent.query_down, projection(latent.query_rank, config_.width));
      ASSIGN_OR_RETURN(to.latent.query_norm, ones(latent.query_rank));
    }
    ASSIGN_OR_RETURN(to.latent.query, projection(queries, latent.query_rank > 0 ? latent.query_rank
                                                                                : config_.width));
    ASSIGN_OR_RETURN(to.latent.down, projection(config_.key_dim, config_.width));
    ASSIGN_OR_RETURN(to.latent.norm, ones(latent.rank));
    ASSIGN_OR_RETURN(to.latent.key_up, matrices(format_, heads, latent.rank, latent.plain_dim));
    ASSIGN_OR_RETURN(to.latent.value_up, matrices(format_, heads, latent.value_dim, latent.rank));
    return ok_status();
  }

  Result<GpuExperts> experts() {
    const std::size_t count = config_.experts.router.experts;
    const std::size_t hidden = config_.experts.hidden_width;
    GpuExperts made;
    ASSIGN_OR_RETURN(const GpuMatrices router,
                     matrices(WeightFormat::kBf16, 1, count, config_.width));
    made.router.weight = router.first;
    ASSIGN_OR_RETURN(made.gate_up,
                     matrices(expert_format_, count, gate_up_rows(hidden), config_.width));
    ASSIGN_OR_RETURN(made.down, matrices(expert_format_, count, config_.width, hidden));
    return made;
  }

  GpuWeights& weights_;
  device::Stream stream_;
  const Config& config_;
  WeightFormat format_;
  WeightFormat expert_format_;
  std::uint64_t seed_;
};

Result<GpuWeights> GpuWeights::random(const Config& config, WeightFormat format,
                                      std::uint64_t seed) {
  if (config.experts.has_own_norms) {
    return Error{ErrorCode::kUnsupported,
                 "`random_weights`: experts with norms of their own are not made"};
  }
  GpuWeights made;
  ASSIGN_OR_RETURN(device::Stream stream, device::Stream::create());
  RandomMaker maker(made, std::move(stream), config, format, seed);
  for (std::uint32_t i = 0; i < config.layers; ++i) {
    ASSIGN_OR_RETURN(GpuLayer layer, maker.layer(i));
    made.layers_.push_back(std::move(layer));
  }
  ASSIGN_OR_RETURN(made.embedding_, maker.table(std::size_t{config.vocabulary} * config.width));
  ASSIGN_OR_RETURN(made.output_norm_, maker.ones(config.width));
  ASSIGN_OR_RETURN(made.output_, maker.projection(config.vocabulary, config.width));
  return made;
}

}  // namespace pagoda::model
