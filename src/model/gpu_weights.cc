#include "model/gpu_weights.h"

#include <algorithm>
#include <optional>
#include <span>
#include <utility>

namespace pagoda::model {

using kernels::WeightMatrix;
using kernels::cuda::kTileRows;
using kernels::cuda::PackedMatrix;
using kernels::cuda::SourceRow;
using kernels::cuda::WeightFormat;

namespace {

// Gates and ups stand in turn, eight rows each.
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

// Packs and sends, or, made without anything, counts the bytes that it would send.
class GpuWeights::Uploader {
 public:
  Uploader() = default;
  Uploader(GpuWeights& weights, device::Stream stream, ThreadPool& pool,
           const UploadOptions& options, std::size_t values_all)
      : weights_(&weights),
        stream_(std::move(stream)),
        pool_(&pool),
        options_(options),
        values_all_(values_all) {}

  std::uint64_t bytes() const { return bytes_; }

  Result<const float*> floats(const std::vector<float>& values) {
    if (values.empty()) return static_cast<const float*>(nullptr);
    const auto bytes = std::as_bytes(std::span(values));
    ASSIGN_OR_RETURN(std::byte* const place, take(bytes.size()));
    if (place != nullptr) RETURN_IF_ERROR(send(bytes, place, "a vector of weights"));
    return reinterpret_cast<const float*>(place);
  }

  // Collects rows of several matrices in the order of `row_of(row)`.
  template <class RowOf>
  Result<PackedMatrix> matrix(WeightFormat format, std::size_t rows, std::size_t columns,
                              RowOf&& row_of) {
    ASSIGN_OR_RETURN(std::byte* const place,
                     take(kernels::cuda::packed_bytes(format, rows, columns)));
    if (place != nullptr) RETURN_IF_ERROR(pack(format, rows, columns, row_of, place));
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
    const std::size_t row_bytes = table.columns * sizeof(std::uint16_t);
    ASSIGN_OR_RETURN(std::byte* const place, take(table.rows * row_bytes));
    const auto round = [&](std::size_t row, std::byte* out) {
      kernels::cuda::round_row(table, row, reinterpret_cast<std::uint16_t*>(out));
    };
    if (place != nullptr) {
      RETURN_IF_ERROR(send_pieces(table.rows, row_bytes, place, "the embedding", round));
    }
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

  template <class RowOf>
  Status pack(WeightFormat format, std::size_t rows, std::size_t columns, RowOf&& row_of,
              std::byte* place) {
    const std::size_t tile_bytes =
        std::size_t{kernels::cuda::chunks_of(columns)} * kernels::cuda::chunk_bytes(format);
    const auto pack_tile = [&](std::size_t tile, std::byte* out) {
      SourceRow sources[kTileRows];
      for (std::size_t r = 0; r < kTileRows; ++r) {
        const std::size_t row = tile * kTileRows + r;
        if (row < rows) sources[r] = row_of(row);
      }
      kernels::cuda::pack_row_tile(format, sources, columns, out);
    };
    RETURN_IF_ERROR(send_pieces(kernels::cuda::row_tiles(rows), tile_bytes, place,
                                "a weight matrix", pack_tile));
    values_done_ += rows * columns;
    if (options_.progress) options_.progress(std::min(values_done_, values_all_), values_all_);
    return ok_status();
  }

  // Sends `count` items of `item_bytes`, which fill(item, out) writes: as many at a time as the
  // staging memory takes, and at least one.
  template <class Fill>
  Status send_pieces(std::size_t count, std::size_t item_bytes, std::byte* to, const char* what,
                     Fill&& fill) {
    const std::size_t piece =
        std::min(count, std::max<std::size_t>(1, options_.staging_bytes / item_bytes));
    staging_.resize(std::max(staging_.size(), piece * item_bytes));
    for (std::size_t first = 0; first < count; first += piece) {
      const std::size_t items = std::min(piece, count - first);
      pool_->run(items, [&](WorkRange range) {
        for (std::size_t i = range.begin; i < range.end; ++i) {
          fill(first + i, staging_.data() + i * item_bytes);
        }
      });
      RETURN_IF_ERROR(
          send(std::span(staging_).first(items * item_bytes), to + first * item_bytes, what));
    }
    return ok_status();
  }

  // Memory of the device; nullptr where bytes are counted alone.
  Result<std::byte*> take(std::uint64_t bytes) {
    bytes_ += bytes;
    if (weights_ == nullptr) return static_cast<std::byte*>(nullptr);
    return weights_->take(bytes);
  }
  Status send(std::span<const std::byte> bytes, std::byte* to, const char* what) {
    return weights_->uploads_.upload(*stream_, bytes, to, what, pool_);
  }

  GpuWeights* weights_ = nullptr;
  std::optional<device::Stream> stream_;
  ThreadPool* pool_ = nullptr;
  UploadOptions options_;
  std::size_t values_all_ = 0;
  std::size_t values_done_ = 0;
  std::uint64_t bytes_ = 0;
  std::vector<std::byte> staging_;
};

Result<std::uint64_t> GpuWeights::packed_bytes(const Weights& weights) {
  GpuWeights nowhere;
  Uploader counter;
  RETURN_IF_ERROR(nowhere.place(weights, counter));
  return counter.bytes();
}

Result<GpuWeights> GpuWeights::upload(const Weights& weights, ThreadPool& pool,
                                      const UploadOptions& options) {
  GpuWeights made;
  std::size_t values = weights.output.rows * weights.output.columns;
  for (const LayerWeights& layer : weights.layers) {
    for_each_matrix(layer,
                    [&](const WeightMatrix& matrix) { values += matrix.rows * matrix.columns; });
  }
  ASSIGN_OR_RETURN(device::Stream stream, device::Stream::create());
  Uploader uploader(made, std::move(stream), pool, options, values);
  RETURN_IF_ERROR(made.place(weights, uploader));
  return made;
}

Status GpuWeights::place(const Weights& weights, Uploader& uploader) {
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
    layers_.push_back(std::move(placed));
  }
  ASSIGN_OR_RETURN(embedding_, uploader.embedding(weights.embedding));
  ASSIGN_OR_RETURN(output_norm_, uploader.floats(weights.output_norm));
  ASSIGN_OR_RETURN(output_, uploader.projection({weights.output, {}}));
  return ok_status();
}

}  // namespace pagoda::model
