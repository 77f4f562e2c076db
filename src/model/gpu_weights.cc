#include "model/gpu_weights.h"

#include <algorithm>
#include <array>
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
std::size_t gate_up_rows(std::size_t hidden_width) {
  return std::size_t{2} * kernels::cuda::chunks_of(hidden_width) * kernels::cuda::kChunkColumns;
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
    const std::array<const Projection*, 3> parts = {&layer.query, &layer.key, &layer.value};
    const auto type = layer.query.weight.type;
    std::vector<GpuProjection> made;
    if (layer.key.weight.type != type || layer.value.weight.type != type) {
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
    // Either all three have biases or none does; a missing one among them is zero.
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

  Result<GpuProjection> gate_and_up(const FeedForwardWeights& network) {
    const WeightMatrix& gate = network.gate.weight;
    const WeightMatrix& up = network.up.weight;
    if (!network.gate.bias.empty() || !network.up.bias.empty()) {
      return Error{ErrorCode::kUnsupported,
                   "the GPU runs no feed-forward gate with a bias; use `device=cpu`"};
    }
    const WeightFormat format =
        gate.type == up.type ? kernels::cuda::weight_format_of(gate.type) : WeightFormat::kBf16;
    GpuProjection made;
    ASSIGN_OR_RETURN(made.weight,
                     matrix(format, gate_up_rows(gate.rows), gate.columns, [&](std::size_t row) {
                       const std::size_t from = row / 16 * 8 + row % 8;
                       if (from >= gate.rows) return SourceRow{};
                       return SourceRow{row % 16 < 8 ? &gate : &up, from};
                     }));
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
    ASSIGN_OR_RETURN(placed.qkv, uploader.query_key_value(layer));
    ASSIGN_OR_RETURN(placed.query_norm, uploader.floats(layer.query_norm));
    ASSIGN_OR_RETURN(placed.key_norm, uploader.floats(layer.key_norm));
    ASSIGN_OR_RETURN(placed.attention_output, uploader.projection(layer.attention_output));
    ASSIGN_OR_RETURN(placed.feed_forward_norm, uploader.floats(layer.feed_forward_norm));
    ASSIGN_OR_RETURN(placed.gate_up, uploader.gate_and_up(layer.feed_forward));
    ASSIGN_OR_RETURN(placed.down, uploader.projection(layer.feed_forward.down));
    made.layers_.push_back(std::move(placed));
  }
  ASSIGN_OR_RETURN(made.embedding_, uploader.embedding(weights.embedding));
  ASSIGN_OR_RETURN(made.output_norm_, uploader.floats(weights.output_norm));
  ASSIGN_OR_RETURN(made.output_, uploader.projection({weights.output, {}}));
  return made;
}

class GpuWeights::RandomMaker {
 public:
  RandomMaker(GpuWeights& weights, device::Stream stream, WeightFormat format, std::uint64_t seed)
      : weights_(weights), stream_(std::move(stream)), format_(format), seed_(seed) {}

  Result<GpuProjection> projection(std::size_t rows, std::size_t columns) {
    const std::size_t bytes = kernels::cuda::packed_bytes(format_, rows, columns);
    ASSIGN_OR_RETURN(std::byte* const place, weights_.take(bytes));
    kernels::cuda::launch_random_fill({.format = format_,
                                       .data = place,
                                       .chunks = bytes / kernels::cuda::chunk_bytes(format_),
                                       .bound = std::sqrt(3.0f / static_cast<float>(columns)),
                                       .seed = seed_++},
                                      stream_.handle());
    RETURN_IF_ERROR(weights_.uploads_.record(stream_, place, bytes, "a random matrix"));
    return GpuProjection{
        {format_, place, static_cast<std::uint32_t>(rows), static_cast<std::uint32_t>(columns)}};
  }

  Result<const kernels::cuda::Bf16*> table(std::size_t values) {
    ASSIGN_OR_RETURN(std::byte* const place, weights_.take(values * 2));
    auto* const bits = reinterpret_cast<kernels::cuda::Bf16*>(place);
    kernels::cuda::launch_random_bf16(bits, values, 1.0f, seed_++, stream_.handle());
    RETURN_IF_ERROR(weights_.uploads_.record(stream_, place, values * 2, "a random embedding"));
    return static_cast<const kernels::cuda::Bf16*>(bits);
  }

  Result<const float*> ones(std::size_t count) {
    const std::vector<float> values(count, 1.0f);
    ASSIGN_OR_RETURN(std::byte* const place, weights_.take(count * sizeof(float)));
    RETURN_IF_ERROR(weights_.uploads_.upload(stream_, std::as_bytes(std::span(values)), place,
                                             "a vector of weights"));
    return reinterpret_cast<const float*>(place);
  }

 private:
  GpuWeights& weights_;
  device::Stream stream_;
  WeightFormat format_;
  std::uint64_t seed_;
};

Result<GpuWeights> GpuWeights::random(const Config& config, WeightFormat format,
                                      std::uint64_t seed) {
  GpuWeights made;
  ASSIGN_OR_RETURN(device::Stream stream, device::Stream::create());
  RandomMaker maker(made, std::move(stream), format, seed);
  const std::size_t queries = std::size_t{config.heads} * config.key_dim;
  const std::size_t keys = std::size_t{config.kv_heads} * config.key_dim;
  for (std::uint32_t i = 0; i < config.layers; ++i) {
    GpuLayer layer;
    ASSIGN_OR_RETURN(layer.attention_norm, maker.ones(config.width));
    ASSIGN_OR_RETURN(const GpuProjection qkv, maker.projection(queries + 2 * keys, config.width));
    layer.qkv.push_back(qkv);
    if (config.qk_norm == QkNormSpan::kHead) {
      ASSIGN_OR_RETURN(layer.query_norm, maker.ones(config.key_dim));
      ASSIGN_OR_RETURN(layer.key_norm, maker.ones(config.key_dim));
    }
    ASSIGN_OR_RETURN(layer.attention_output, maker.projection(config.width, queries));
    ASSIGN_OR_RETURN(layer.feed_forward_norm, maker.ones(config.width));
    ASSIGN_OR_RETURN(layer.gate_up,
                     maker.projection(gate_up_rows(config.hidden_width), config.width));
    ASSIGN_OR_RETURN(layer.down, maker.projection(config.width, config.hidden_width));
    made.layers_.push_back(std::move(layer));
  }
  ASSIGN_OR_RETURN(made.embedding_, maker.table(std::size_t{config.vocabulary} * config.width));
  ASSIGN_OR_RETURN(made.output_norm_, maker.ones(config.width));
  ASSIGN_OR_RETURN(made.output_, maker.projection(config.vocabulary, config.width));
  return made;
}

}  // namespace pagoda::model
