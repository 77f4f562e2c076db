#include "kernels/cuda/reference.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>

#include "base/half.h"
#include "kernels/cuda/gates.h"
#include "kernels/ref/dequantise_blocks.h"

namespace pagoda::kernels::cuda::reference {
namespace {

constexpr float kLog2E = 1.44269504088896341f;

struct HostMath {
  static float exp2(float x) { return std::exp2(x); }
  static float fma(float a, float b, float c) { return std::fma(a, b, c); }
};

std::uint16_t half_at(const std::byte* at) {
  std::uint16_t bits = 0;
  std::memcpy(&bits, at, sizeof bits);
  return bits;
}

std::size_t group_columns(WeightFormat format) {
  return format == WeightFormat::kInt8Group16 ? 16 : 32;
}

// The place of one weight: its chunk, and which lane and value of which step.
struct WeightCoord {
  const std::byte* chunk;
  std::size_t step;
  std::size_t lane;
  std::size_t value;
  std::size_t row;     // of the tile
  std::size_t column;  // of the chunk
  std::size_t group;   // of the chunk
};

WeightCoord find(WeightFormat format, const std::byte* packed, std::size_t columns, std::size_t row,
                 std::size_t column) {
  const std::size_t chunk = row / kTileRows * chunks_of(columns) + column / kChunkColumns;
  const std::size_t r = row % kTileRows;
  const std::size_t c = column % kMmaK;
  return {.chunk = packed + chunk * chunk_bytes(format),
          .step = column % kChunkColumns / kMmaK,
          .lane = r % 8 * 4 + c % 8 / 2,
          .value = c / 8 * 4 + r / 8 * 2 + c % 2,
          .row = r,
          .column = column % kChunkColumns,
          .group = column % kChunkColumns / group_columns(format)};
}

// The factor that is multiplied: a bf16 weight, or a code.
float factor_at(WeightFormat format, const WeightCoord& at) {
  if (format == WeightFormat::kBf16) {
    const std::size_t block = at.row / 8 * 8 + at.column / 8;
    return float_from_bf16(half_at(at.chunk + block * 128 + at.row % 8 * 16 + at.column % 8 * 2));
  }
  if (has_nibbles(format)) {
    std::uint32_t word = 0;
    std::memcpy(&word, at.chunk + at.lane * 16 + at.step * 4, sizeof word);
    const std::uint32_t code = word >> (at.value / 2 * 4 + at.value % 2 * 16) & 15u;
    if (format == WeightFormat::kFp4) return ref::kFp4Doubled[code] / 2;
    return static_cast<float>(code) - (format == WeightFormat::kInt4 ? 8.0f : 0.0f);
  }
  const std::byte* const code =
      at.chunk + at.step / 2 * 512 + at.lane * 16 + at.step % 2 * 8 + at.value;
  return static_cast<float>(static_cast<std::int8_t>(*code));
}

std::size_t index_of_scale(WeightFormat format, const WeightCoord& at) {
  return scale_index(format, static_cast<std::uint32_t>(at.row),
                     static_cast<std::uint32_t>(at.group));
}

float scale_at(WeightFormat format, const WeightCoord& at) {
  if (format == WeightFormat::kBf16) return 1.0f;
  const std::byte* const scales = at.chunk + (has_nibbles(format) ? 512 : 1024);
  const std::uint16_t bits = half_at(scales + index_of_scale(format, at) * 2);
  return format == WeightFormat::kFp4 ? float_from_bf16(bits) : float_from_fp16(bits);
}

float minimum_at(WeightFormat format, const WeightCoord& at) {
  if (format != WeightFormat::kInt4Min) return 0.0f;
  return float_from_fp16(
      half_at(at.chunk + 512 + (2 * kTileRows + index_of_scale(format, at)) * 2));
}

// A step adds its 16 products and the sum so far, and rounds once.
template <class Term>
float mma_sum(float sum, std::size_t begin, std::size_t end, Term&& term) {
  for (std::size_t step = begin; step < end; step += kMmaK) {
    double exact = static_cast<double>(sum);
    for (std::size_t k = step; k < std::min(end, step + kMmaK); ++k) exact += term(k);
    sum = static_cast<float>(exact);
  }
  return sum;
}

float rounded(bool to_bf16, float value) {
  return to_bf16 ? float_from_bf16(bf16_from_float(value))
                 : float_from_fp16(fp16_from_float(value));
}

struct Partial {
  float top = -std::numeric_limits<float>::infinity();
  float lanes[4] = {};  // of weights, until the split's end
  float sum = 0;        // from there on
  std::vector<float> values;
};

std::size_t value_dim_of(const Query& query) {
  return query.value_dim == 0 ? query.dim : query.value_dim;
}

void add_tile(const Query& query, const float* keys, const float* values, std::uint64_t base,
              Partial& partial) {
  const float scale = query.cap > 0 ? kLog2E : query.scale * kLog2E;
  const std::size_t value_dim = value_dim_of(query);
  const auto visible = [&](std::uint64_t key) {
    return key >= query.first && key <= query.position;
  };
  float scores[kKeyTile];
  float best = -std::numeric_limits<float>::infinity();
  for (std::uint32_t i = 0; i < kKeyTile; ++i) {
    if (!visible(base + i)) continue;
    const float* const key = keys + (base + i) * query.dim;
    scores[i] = mma_sum(0, 0, query.dim, [&](std::size_t d) {
      return static_cast<double>(query.q[d]) * static_cast<double>(key[d]);
    });
    if (query.cap > 0) scores[i] = soft_cap(scores[i], query.scale, query.cap);
    best = std::max(std::max(best, -1e30f), scores[i]);
  }
  const float top = std::max(partial.top, best * scale);
  const float shrink = std::exp2(partial.top - top);
  float lanes[4] = {};
  for (std::uint32_t i = 0; i < kKeyTile; ++i) {
    scores[i] = visible(base + i) ? std::exp2(std::fma(scores[i], scale, -top)) : 0.0f;
    lanes[i % 8 / 2] += scores[i];
  }
  for (int i = 0; i < 4; ++i) partial.lanes[i] = std::fma(partial.lanes[i], shrink, lanes[i]);
  partial.top = top;
  for (std::size_t d = 0; d < value_dim; ++d) {
    const float added_values = mma_sum(0, 0, kKeyTile, [&](std::size_t i) {
      if (!visible(base + i)) return 0.0;
      return static_cast<double>(rounded(query.bf16_weights, scores[i])) *
             static_cast<double>(values[(base + i) * value_dim + d]);
    });
    partial.values[d] = std::fma(partial.values[d], shrink, added_values);
  }
}

void merge(Partial& left, const Partial& right) {
  if (std::isinf(left.top)) {
    left = right;
    return;
  }
  const float top = std::max(left.top, right.top);
  const float a = std::exp2(left.top - top);
  const float b = std::exp2(right.top - top);
  left.sum = std::fma(left.sum, a, right.sum * b);
  for (std::size_t d = 0; d < left.values.size(); ++d) {
    left.values[d] = std::fma(left.values[d], a, right.values[d] * b);
  }
  left.top = top;
}

// Merges the splits that the query sees into `total`, left to right.
void merge_splits(const Query& query, const float* keys, const float* values, Partial& total) {
  for (std::uint64_t split = query.first / kSplitKeys; split <= query.position / kSplitKeys;
       ++split) {
    Partial partial;
    partial.values.resize(value_dim_of(query));
    const std::uint64_t begin = std::max(split * kSplitKeys, query.first) / kKeyTile * kKeyTile;
    const std::uint64_t end = std::min<std::uint64_t>((split + 1) * kSplitKeys, query.position + 1);
    for (std::uint64_t base = begin; base < end; base += kKeyTile) {
      add_tile(query, keys, values, base, partial);
    }
    const float(&lanes)[4] = partial.lanes;
    partial.sum = (lanes[0] + lanes[1]) + (lanes[2] + lanes[3]);
    merge(total, partial);
  }
}

// 1 / root mean square of a row, with the sums of 256 threads.
float row_factor(const float* x, float epsilon, std::size_t width) {
  constexpr std::size_t kThreads = 256;
  float lanes[kThreads] = {};
  for (std::size_t i = 0; i < width; ++i) {
    lanes[i % kThreads] = std::fma(x[i], x[i], lanes[i % kThreads]);
  }
  float sum = 0;
  for (std::size_t warp = 0; warp < kThreads / 32; ++warp) {
    float* const own = lanes + warp * 32;
    for (std::size_t step = 16; step > 0; step /= 2) {
      for (std::size_t i = 0; i < step; ++i) own[i] += own[i + step];
    }
    sum = warp == 0 ? own[0] : sum + own[0];
  }
  const float mean = sum / static_cast<float>(width);
  return 1.0f / std::sqrt(mean + epsilon);
}

}  // namespace

float weight_at(WeightFormat format, const std::byte* packed, std::size_t columns, std::size_t row,
                std::size_t column) {
  const WeightCoord at = find(format, packed, columns, row, column);
  return factor_at(format, at) * scale_at(format, at) + minimum_at(format, at);
}

std::vector<float> gemm(WeightFormat format, const std::byte* packed, std::size_t rows,
                        std::size_t columns, const Bf16* x) {
  std::vector<float> y(rows);
  const auto value = [&](std::size_t k) { return static_cast<double>(float_from_bf16(x[k])); };
  for (std::size_t n = 0; n < rows; ++n) {
    const auto term = [&](std::size_t k) {
      return value(k) * static_cast<double>(factor_at(format, find(format, packed, columns, n, k)));
    };
    if (format == WeightFormat::kBf16) {
      y[n] = mma_sum(0, 0, columns, term);
      continue;
    }
    for (std::uint32_t part = 0; part < kSplitK; ++part) {
      const std::uint32_t chunks = chunks_of(columns);
      const std::size_t part_end =
          std::min(columns, std::size_t{split_k_begin(chunks, part + 1)} * kChunkColumns);
      float sum = 0;
      for (std::size_t k = std::size_t{split_k_begin(chunks, part)} * kChunkColumns; k < part_end;
           k += group_columns(format)) {
        const std::size_t end = std::min(columns, k + group_columns(format));
        const WeightCoord at = find(format, packed, columns, n, k);
        sum = std::fma(scale_at(format, at), mma_sum(0, k, end, term), sum);
        if (format != WeightFormat::kInt4Min) continue;
        sum = std::fma(minimum_at(format, at), mma_sum(0, k, end, value), sum);
      }
      y[n] = part == 0 ? sum : y[n] + sum;
    }
  }
  return y;
}

void rms_norm(const float* x, const float* weight, float epsilon, std::size_t width, Bf16* y) {
  const float factor = row_factor(x, epsilon, width);
  for (std::size_t i = 0; i < width; ++i) y[i] = bf16_from_float(x[i] * factor * weight[i]);
}

void row_norm(float* x, const float* weight, float epsilon, std::size_t width) {
  const float factor = row_factor(x, epsilon, width);
  for (std::size_t i = 0; i < width; ++i) x[i] = x[i] * factor * weight[i];
}

void qk_norm(float* head, const float* weight, float epsilon, std::size_t width) {
  std::array<float, 32> lanes = {};
  for (std::size_t d = 0; d < width; ++d) lanes[d % 32] = std::fma(head[d], head[d], lanes[d % 32]);
  for (std::size_t step = 16; step > 0; step /= 2) {
    for (std::size_t i = 0; i < step; ++i) lanes[i] += lanes[i + step];
  }
  const float mean = lanes[0] / static_cast<float>(width);
  const float factor = 1.0f / std::sqrt(mean + epsilon);
  for (std::size_t d = 0; d < width; ++d) head[d] = head[d] * factor * weight[d];
}

float swiglu(float gate, float up) { return gate_of<HostMath>(Epilogue::kSwiGlu, gate, up); }
float geglu(float gate, float up) { return gate_of<HostMath>(Epilogue::kGeGlu, gate, up); }
float clamped_swiglu(float gate, float up) {
  return gate_of<HostMath>(Epilogue::kClampedSwiGlu, gate, up);
}
float soft_cap(float x, float scale, float cap) {
  return soft_cap_of<HostMath>(x, soft_cap_slope(scale, cap), cap);
}

float cached(kv::memory::Element element, float value) {
  return kv::memory::unit_bytes(element) == 1 ? float_from_fp16(fp16_from_float(value)) : value;
}

std::vector<float> attention(const Query& query, const float* keys, const float* values) {
  Partial total;
  merge_splits(query, keys, values, total);
  if (query.sinks > 0) {
    Query at_sinks = query;
    at_sinks.q = query.sink_q;
    at_sinks.first = 0;
    at_sinks.position = query.sinks - 1;
    merge_splits(at_sinks, keys, values, total);
  }
  if (query.sink) {
    Partial sink = {.top = *query.sink * kLog2E, .sum = 1, .values = {}};
    sink.values.resize(total.values.size());
    merge(total, sink);
  }
  for (float& value : total.values) value /= total.sum;
  return total.values;
}

}  // namespace pagoda::kernels::cuda::reference
