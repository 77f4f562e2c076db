#include "model/gpu_weights.h"

#include <algorithm>
#include <cmath>
#include <span>

namespace pagoda::model {

using kernels::WeightMatrix;
using kernels::cuda::kTileRows;
using kernels::cuda::PackedMatrix;
using kernels::cuda::SourceRow;
using kernels::cuda::WeightFormat;

namespace {

// Rows of zeros after the last gate and up fill the last chunk of outputs (Epilogue::kSwiGlu).
// Gates and ups stand in turn, eight rows each.
std::size_t gate_up_rows(std::size_t hidden_width) {
  return std::size_t{2} * kernels::cuda::chunks_of(hidden_width) * kernels::cuda::kChunkColumns;
}
std::size_t gate_up_source(std::size_t row) { return row / 16 * 8 + row % 8; }
bool is_gate_row(std::size_t row) { return row % 16 < 8; }
SourceRow gate_up_row(const FeedForwardWeights& network, std::size_t row) {
  const std::size_t from = gate_up_source(row);
  if (from >= network.gate.weight.rows) return {};
  return {is_gate_row(row) ? &network.gate.weight : &network.up.weight, from};
}

std::vector<const WeightMatrix*> weights_of(const std::vector<Projection>& projections) {
  std::vector<const WeightMatrix*> weights;
  for (const Projection& one : projections) weights.push_back(&one.weight);
  return weights;
}

// Biases in the order of those rows; empty: there are none.
std::vector<float> gate_up_bias(const FeedForwardWeights& network) {
  const std::vector<float>& gate = network.gate.bias;
  const std::vector<float>& up = network.up.bias;
  std::vector<float> bias;
  if (gate.empty() && up.empty()) return bias;
  bias.resize(gate_up_rows(network.gate.weight.rows));
  for (std::size_t row = 0; row < bias.size(); ++row) {
    const std::vector<float>& from = is_gate_row(row) ? gate : up;
    if (gate_up_source(row) < from.size()) bias[row] = from[gate_up_source(row)];
  }
  return bias;
}

}  // namespace

Result<std::byte*> GpuWeights::take(std::uint64_t bytes) {
  ASSIGN_OR_RETURN(device::Buffer buffer, device::Buffer::allocate(bytes, "weights"));
  bytes_ += bytes;
  return buffers_.emplace_back(std::move(buffer)).data();
}

class GpuWeights::Uploader {
 public:
  Uploader(GpuWeights& weights, device::Stream stream, ThreadPool& pool,
           const PackProgress& progress, std::size_t bytes_all)
      : weights_(weights),
        stream_(std::move(stream)),
        pool_(pool),
        progress_(progress),
        bytes_all_(bytes_all) {}

  Result<const float*> floats(const std::vector<float>& values) {
    if (values.empty()) return static_cast<const float*>(nullptr);
    ASSIGN_OR_RETURN(std::byte* const place,
                     send(std::as_bytes(std::span(values)), "a vector of weights"));
    return reinterpret_cast<const float*>(place);
  }

  // Collects rows of several matrices in the order of `row_of(row)`.
  template <class RowOf>
  Result<PackedMatrix> matrix(WeightFormat format, std::size_t rows, std::size_t columns,
                              RowOf&& row_of) {
    const std::size_t bytes = kernels::cuda::packed_bytes(format, rows, columns);
    const std::size_t tile_bytes = bytes / kernels::cuda::row_tiles(rows);
    staging_.resize(std::max(staging_.size(), bytes));
    pool_.run(kernels::cuda::row_tiles(rows), [&](WorkRange range) {
      for (std::size_t tile = range.begin; tile < range.end; ++tile) {
        SourceRow sources[kTileRows];
        for (std::size_t r = 0; r < kTileRows; ++r) {
          const std::size_t row = tile * kTileRows + r;
          if (row < rows) sources[r] = row_of(row);
        }
        kernels::cuda::pack_row_tile(format, sources, columns, staging_.data() + tile * tile_bytes);
      }
    });
    ASSIGN_OR_RETURN(std::byte* const place,
                     send(std::span(staging_).first(bytes), "a weight matrix"));
    bytes_done_ += rows * columns;
    if (progress_) progress_(std::min(bytes_done_, bytes_all_), bytes_all_);
    return PackedMatrix{format, place, static_cast<std::uint32_t>(rows),
                        static_cast<std::uint32_t>(columns)};
  }

  Result<GpuProjection> projection(const Projection& projection) {
    GpuProjection made;
    const WeightMatrix& weight = projection.weight;
    ASSIGN_OR_RETURN(made.weight, matrix(kernels::cuda::weight_format_of(weight.type), weight.rows,
                                         weight.columns, [&](std::size_t row) {
                                           return SourceRow{&weight, row};
                                         }));
    ASSIGN_OR_RETURN(made.bias, floats(projection.bias));
    return made;
  }

  Result<std::vector<GpuProjection>> query_key_value(const LayerWeights& layer) {
    std::vector<const Projection*> parts = {&layer.query};
    if (layer.key.weight.rows > 0) {
      // Where a layer has no values of its own, those are its keys.
      parts.insert(parts.end(),
                   {&layer.key, layer.value.weight.rows > 0 ? &layer.value : &layer.key});
    }
    const auto type = layer.query.weight.type;
    const bool is_one_type = std::all_of(parts.begin(), parts.end(), [&](const Projection* part) {
      return part->weight.type == type;
    });
    std::vector<GpuProjection> made;
    if (!is_one_type) {
      std::uint32_t column = 0;
      for (const Projection* const part : parts) {
        ASSIGN_OR_RETURN(GpuProjection one, projection(*part));
        one.column = column;
        column += static_cast<std::uint32_t>(part->weight.rows);
        made.push_back(one);
      }
      return made;
    }
    std::vector<SourceRow> rows;
    std::vector<float> bias;
    for (const Projection* const part : parts) {
      for (std::size_t r = 0; r < part->weight.rows; ++r) rows.push_back({&part->weight, r});
      bias.insert(bias.end(), part->bias.begin(), part->bias.end());
    }
    // Either all have biases or none does; a missing one among them is zero.
    if (!bias.empty() && bias.size() != rows.size()) {
      bias.clear();
      for (const Projection* const part : parts) {
        std::vector<float> own = part->bias;
        own.resize(part->weight.rows);
        bias.insert(bias.end(), own.begin(), own.end());
      }
    }
    GpuProjection all;
    ASSIGN_OR_RETURN(
        all.weight, matrix(kernels::cuda::weight_format_of(type), rows.size(),
                           layer.query.weight.columns, [&](std::size_t row) { return rows[row]; }));
    ASSIGN_OR_RETURN(all.bias, floats(bias));
    made.push_back(all);
    return made;
  }

  Result<GpuNetwork> network(const FeedForwardWeights& network) {
    GpuNetwork made;
    if (network.gate.weight.rows == 0) return made;  // there is none
    ASSIGN_OR_RETURN(made.gate_up, gate_and_up(network));
    ASSIGN_OR_RETURN(made.down, projection(network.down));
    return made;
  }

  Result<GpuProjection> gate_and_up(const FeedForwardWeights& network) {
    const WeightMatrix& gate = network.gate.weight;
    const WeightMatrix& up = network.up.weight;
    const WeightFormat format =
        gate.type == up.type ? kernels::cuda::weight_format_of(gate.type) : WeightFormat::kBf16;
    GpuProjection made;
    ASSIGN_OR_RETURN(made.weight,
                     matrix(format, gate_up_rows(gate.rows), gate.columns,
                            [&](std::size_t row) { return gate_up_row(network, row); }));
    ASSIGN_OR_RETURN(made.bias, floats(gate_up_bias(network)));
    return made;
  }

  // Matrices of one shape; where their types differ, as bf16.
  Result<GpuMatrices> matrices(const std::vector<const WeightMatrix*>& all) {
    const auto row = [&](std::size_t index, std::size_t r) {
      return r < all[index]->rows ? SourceRow{all[index], r} : SourceRow{};
    };
    return matrices_of(all, all.front()->rows, all.size(), row);
  }
  // `rows` rows of each of `count` matrices, which row(index, r) finds in `all`.
  template <class Row>
  Result<GpuMatrices> matrices_of(const std::vector<const WeightMatrix*>& all, std::size_t rows,
                                  std::size_t count, Row&& row) {
    const auto type = all.front()->type;
    const bool is_one_type = std::all_of(
        all.begin(), all.end(), [&](const WeightMatrix* one) { return one->type == type; });
    const WeightFormat format =
        is_one_type ? kernels::cuda::weight_format_of(type) : WeightFormat::kBf16;
    const std::size_t padded = kernels::cuda::row_tiles(rows) * std::size_t{kTileRows};
    const std::size_t columns = all.front()->columns;
    GpuMatrices made;
    ASSIGN_OR_RETURN(made.first, matrix(format, count * padded, columns, [&](std::size_t r) {
                       return row(r / padded, r % padded);
                     }));
    made.first.rows = static_cast<std::uint32_t>(rows);
    made.stride = kernels::cuda::packed_bytes(format, rows, columns);
    return made;
  }

  Result<GpuLatent> latent(const LayerWeights& layer) {
    const LatentWeights& weights = layer.latent;
    GpuLatent made;
    if (weights.query_down.weight.rows > 0) {
      ASSIGN_OR_RETURN(made.query_down, projection(weights.query_down));
    }
    ASSIGN_OR_RETURN(made.query_norm, floats(weights.query_norm));
    ASSIGN_OR_RETURN(made.query, projection(layer.query));
    ASSIGN_OR_RETURN(made.down, projection(weights.down));
    ASSIGN_OR_RETURN(made.norm, floats(weights.norm));
    ASSIGN_OR_RETURN(made.key_up, matrices(weights_of(weights.key_up)));
    ASSIGN_OR_RETURN(made.value_up, matrices(weights_of(weights.value_up)));
    return made;
  }

  Result<GpuExperts> experts(const ExpertWeights& weights) {
    GpuExperts made;
    const std::vector<FeedForwardWeights>& all = weights.experts;
    if (all.empty()) return made;
    ASSIGN_OR_RETURN(made.router, projection(weights.router));
    ASSIGN_OR_RETURN(made.selection_bias, floats(weights.selection_bias));
    ASSIGN_OR_RETURN(made.weight_scales, floats(weights.weight_scales));
    if (weights.shared_gate.weight.rows > 0) {
      ASSIGN_OR_RETURN(made.shared_gate, projection(weights.shared_gate));
    }
    ASSIGN_OR_RETURN(made.router_norm, floats(weights.router_norm));
    ASSIGN_OR_RETURN(made.input_norm, floats(weights.input_norm));
    ASSIGN_OR_RETURN(made.output_norm, floats(weights.output_norm));
    ASSIGN_OR_RETURN(made.shared_output_norm, floats(weights.shared_output_norm));
    std::vector<const WeightMatrix*> downs;
    std::vector<const WeightMatrix*> gates_and_ups;
    std::vector<float> gate_up_biases;
    std::vector<float> down_biases;
    for (const FeedForwardWeights& one : all) {
      downs.push_back(&one.down.weight);
      gates_and_ups.insert(gates_and_ups.end(), {&one.gate.weight, &one.up.weight});
      const std::vector<float> bias = gate_up_bias(one);
      gate_up_biases.insert(gate_up_biases.end(), bias.begin(), bias.end());
      down_biases.insert(down_biases.end(), one.down.bias.begin(), one.down.bias.end());
    }
    const std::size_t rows = gate_up_rows(all.front().gate.weight.rows);
    ASSIGN_OR_RETURN(made.gate_up, matrices_of(gates_and_ups, rows, all.size(),
                                               [&](std::size_t index, std::size_t row) {
                                                 return gate_up_row(all[index], row);
                                               }));
    ASSIGN_OR_RETURN(made.down, matrices(downs));
    RETURN_IF_ERROR(add_biases(gate_up_biases, rows, all.size(), made.gate_up));
    RETURN_IF_ERROR(add_biases(down_biases, downs.front()->rows, all.size(), made.down));
    return made;
  }

  Result<const kernels::cuda::Bf16*> embedding(const WeightMatrix& table) {
    std::vector<std::uint16_t> values(table.rows * table.columns);
    pool_.run(table.rows, [&](WorkRange range) {
      for (std::size_t r = range.begin; r < range.end; ++r) {
        kernels::cuda::round_row(table, r, values.data() + r * table.columns);
      }
    });
    ASSIGN_OR_RETURN(std::byte* const place,
                     send(std::as_bytes(std::span(values)), "the embedding"));
    return reinterpret_cast<const kernels::cuda::Bf16*>(place);
  }

 private:
  // Either all matrices have biases or none does.
  Status add_biases(const std::vector<float>& biases, std::size_t each, std::size_t count,
                    GpuMatrices& to) {
    if (biases.empty()) return ok_status();
    if (biases.size() != each * count) {
      return Error{ErrorCode::kUnsupported,
                   "the GPU runs experts with biases only where all have them; use `device=cpu`"};
    }
    ASSIGN_OR_RETURN(to.bias, floats(biases));
    to.bias_stride = each;
    return ok_status();
  }
  Result<std::byte*> send(std::span<const std::byte> bytes, const char* what) {
    ASSIGN_OR_RETURN(std::byte* const place, weights_.take(bytes.size()));
    RETURN_IF_ERROR(weights_.uploads_.upload(stream_, bytes, place, what, &pool_));
    return place;
  }

  GpuWeights& weights_;
  device::Stream stream_;
  ThreadPool& pool_;
  const PackProgress& progress_;
  std::size_t bytes_all_;
  std::size_t bytes_done_ = 0;
  std::vector<std::byte> staging_;
};

Result<GpuWeights> GpuWeights::upload(const Weights& weights, ThreadPool& pool,
                                      const PackProgress& progress) {
  GpuWeights made;
  std::size_t values = weights.output.rows * weights.output.columns;
  for (const LayerWeights& layer : weights.layers) {
    for_each_matrix(layer,
                    [&](const WeightMatrix& matrix) { values += matrix.rows * matrix.columns; });
  }
  ASSIGN_OR_RETURN(device::Stream stream, device::Stream::create());
  Uploader uploader(made, std::move(stream), pool, progress, values);
  for (const LayerWeights& layer : weights.layers) {
    GpuLayer placed;
    ASSIGN_OR_RETURN(placed.attention_norm, uploader.floats(layer.attention_norm));
    if (layer.latent.down.weight.rows > 0) {
      ASSIGN_OR_RETURN(placed.latent, uploader.latent(layer));
    } else {
      ASSIGN_OR_RETURN(placed.qkv, uploader.query_key_value(layer));
    }
    ASSIGN_OR_RETURN(placed.query_norm, uploader.floats(layer.query_norm));
    ASSIGN_OR_RETURN(placed.key_norm, uploader.floats(layer.key_norm));
    ASSIGN_OR_RETURN(placed.attention_output, uploader.projection(layer.attention_output));
    ASSIGN_OR_RETURN(placed.attention_output_norm, uploader.floats(layer.attention_output_norm));
    ASSIGN_OR_RETURN(placed.sinks, uploader.floats(layer.sinks));
    ASSIGN_OR_RETURN(placed.feed_forward_norm, uploader.floats(layer.feed_forward_norm));
    ASSIGN_OR_RETURN(placed.feed_forward, uploader.network(layer.feed_forward));
    ASSIGN_OR_RETURN(placed.experts, uploader.experts(layer.experts));
    ASSIGN_OR_RETURN(placed.feed_forward_output_norm,
                     uploader.floats(layer.feed_forward_output_norm));
    placed.output_scale = layer.output_scale;
    made.layers_.push_back(std::move(placed));
  }
  ASSIGN_OR_RETURN(made.embedding_, uploader.embedding(weights.embedding));
  ASSIGN_OR_RETURN(made.output_norm_, uploader.floats(weights.output_norm));
  ASSIGN_OR_RETURN(made.output_, uploader.projection({weights.output, {}}));
  return made;
}

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
    const std::size_t all = std::size_t{config_.heads + 2 * heads.kv_heads} * heads.key_dim;
    ASSIGN_OR_RETURN(const GpuProjection qkv, projection(all, config_.width));
    to.qkv.push_back(qkv);
    const bool each = config_.qk_norm == QkNormSpan::kHead;
    const bool normed = config_.qk_norm != QkNormSpan::kNone;
    const std::size_t dim = normed ? heads.key_dim : 0;
    ASSIGN_OR_RETURN(to.query_norm, ones(dim * (each ? 1 : config_.heads)));
    ASSIGN_OR_RETURN(to.key_norm, ones(dim * (each ? 1 : heads.kv_heads)));
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
