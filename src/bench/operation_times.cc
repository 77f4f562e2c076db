#include "bench/operation_times.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/large_array.h"
#include "base/random.h"
#include "bench/samples.h"

namespace pagoda::bench {
namespace {

constexpr std::uint64_t kOperandSeed = 1;
constexpr std::uint64_t kMatrixBytesMax = std::uint64_t{256} << 20;  // all copies of one matrix
constexpr std::size_t kPassesMin = 3;
constexpr float kEpsilon = 1e-5f;

// Every byte's second bit is 0: floats of any width among them are below 2 and finite.
LargeArray<std::byte> random_bytes(std::size_t count) {
  LargeArray<std::byte> bytes(count);
  for (std::size_t i = 0; i < count; i += 8) {
    const std::uint64_t bits = random_bits(kOperandSeed, 0, i) & 0xBFBF'BFBF'BFBF'BFBF;
    for (std::size_t b = 0; b < std::min<std::size_t>(8, count - i); ++b) {
      bytes[i + b] = static_cast<std::byte>(bits >> (8 * b));
    }
  }
  return bytes;
}

// Uniform in [-1, 1).
LargeArray<float> random_floats(std::size_t count) {
  LargeArray<float> floats(count);
  for (std::size_t i = 0; i < count; ++i) {
    floats[i] = static_cast<float>(2 * random_unit(kOperandSeed, 1, i) - 1);
  }
  return floats;
}

// Bytes for each thread to write to, on cache lines of their own.
class ThreadScratch {
 public:
  ThreadScratch(std::size_t threads, std::size_t bytes)
      : stride_((bytes + kCacheLineBytes - 1) / kCacheLineBytes * kCacheLineBytes),
        bytes_(threads * stride_) {}
  std::byte* of(std::size_t thread) { return bytes_.data() + thread * stride_; }

 private:
  std::size_t stride_;
  LargeArray<std::byte> bytes_;
};

// Random rows as the set multiplies them.
LargeArray<std::byte> random_operands(const kernels::KernelSet& set, std::size_t rows,
                                      std::size_t columns) {
  const LargeArray<float> floats = random_floats(rows * columns);
  LargeArray<std::byte> activations(kernels::activation_bytes(set.numerics, columns, rows));
  for (std::size_t row = 0; row < rows; ++row) {
    set.pack_activations(floats.data() + row * columns, columns, activations.data(), row);
  }
  return activations;
}

std::vector<kv::BlockId> blocks_in_order(std::uint64_t tokens, std::uint32_t block_tokens) {
  std::vector<kv::BlockId> table;
  for (std::uint32_t block = 0; block * block_tokens < tokens; ++block) table.emplace_back(block);
  return table;
}

}  // namespace

double OperationTimer::median_seconds(std::size_t copies,
                                      const std::function<void(std::size_t)>& call) const {
  for (std::size_t i = 0; i < copies; ++i) call(i);  // first touch
  std::vector<double> passes;
  double spent = 0;
  while (passes.size() < kPassesMin || spent < options_.seconds) {
    const std::int64_t begin_ns = clock_.now_ns();
    for (std::size_t i = 0; i < copies; ++i) call(i);
    const double seconds = seconds_between(begin_ns, clock_.now_ns());
    passes.push_back(seconds / static_cast<double>(copies));
    spent += seconds;
  }
  return median(std::move(passes));
}

std::vector<OperationTime> OperationTimer::time_matmul(const std::string& name,
                                                       gguf::TensorType type, std::uint32_t outputs,
                                                       std::uint32_t columns,
                                                       std::uint32_t copies) const {
  const gguf::TensorTypeInfo& info = gguf::tensor_type_info(type);
  const std::size_t row_bytes = columns / info.block_elements * info.block_bytes;
  const std::size_t matrix_bytes = outputs * row_bytes;
  const std::size_t matrices = std::clamp<std::size_t>(kMatrixBytesMax / matrix_bytes, 1, copies);
  const LargeArray<std::byte> weights = random_bytes(matrices * matrix_bytes);
  const std::uint32_t rows_max = *std::max_element(options_.rows.begin(), options_.rows.end());
  const LargeArray<std::byte> x = random_operands(kernels_, rows_max, columns);
  LargeArray<float> y(std::size_t{rows_max} * outputs);
  ThreadScratch scratch(pool_.threads(), kernels_.matmul_scratch(columns));
  const std::size_t panels = (outputs + kernels::kMatmulPanel - 1) / kernels::kMatmulPanel;
  kernels::WeightMatrix weight = {type, weights.data(), outputs, columns, row_bytes, nullptr};
  const std::size_t packed_bytes = kernels_.packed_bytes(weight);
  LargeArray<std::byte> packed(matrices * packed_bytes);
  for (std::size_t copy = 0; packed_bytes > 0 && copy < matrices; ++copy) {
    weight.data = weights.data() + copy * matrix_bytes;
    kernels_.pack(weight, 0, outputs, packed.data() + copy * packed_bytes);
  }

  std::vector<OperationTime> times;
  for (const std::uint32_t rows : options_.rows) {
    const double seconds = median_seconds(matrices, [&](std::size_t copy) {
      const kernels::Matmul job = {
          .x = x.data(),
          .rows = rows,
          .weight = {type, weights.data() + copy * matrix_bytes, outputs, columns, row_bytes,
                     packed.data() + copy * packed_bytes},
          .y = y.data(),
          .y_stride = outputs,
          .accumulate = false};
      pool_.run(panels, [&](WorkRange range) {
        kernels_.matmul(job, range.begin * kernels::kMatmulPanel,
                        std::min<std::size_t>(range.end * kernels::kMatmulPanel, outputs),
                        scratch.of(range.thread));
      });
    });
    times.push_back({.operation = "matmul " + name,
                     .shape = fmt::format("{} -> {} {}", columns, outputs, info.name),
                     .rows = rows,
                     .seconds = seconds,
                     .bytes = matrix_bytes,
                     .set_bytes = matrices * matrix_bytes,
                     .multiply_adds = std::uint64_t{rows} * outputs * columns});
  }
  return times;
}

std::vector<OperationTime> OperationTimer::time_attention(const ModelShape& shape) const {
  std::vector<OperationTime> times;
  for (const std::uint32_t depth : options_.depths) {
    for (const std::uint32_t rows : options_.rows) {
      times.push_back(time_attention_rows(shape, depth, rows));
    }
  }
  return times;
}

// Rows are the next tokens of one sequence, each behind all before it.
OperationTime OperationTimer::time_attention_rows(const ModelShape& shape, std::uint32_t depth,
                                                  std::uint32_t rows) const {
  const kv::memory::PageLayout layout = {.elements = options_.kv_elements,
                                         .layers = shape.layers,
                                         .kv_heads = shape.kv_heads,
                                         .key_dim = shape.head_dim,
                                         .value_dim = shape.head_dim,
                                         .value_order = kernels_.value_order,
                                         .key_order = kernels_.key_order};
  const std::uint64_t keys = std::uint64_t{depth} + rows;
  const std::vector<kv::BlockId> table = blocks_in_order(keys, layout.block_tokens);
  LargeArray<std::byte> pages = random_bytes(table.size() * layout.page_bytes());
  const std::size_t row_floats = std::size_t{shape.heads} * shape.head_dim;
  const LargeArray<float> q = random_floats(rows * row_floats);
  LargeArray<float> out(rows * row_floats);
  const std::uint32_t group = shape.heads / shape.kv_heads;
  const std::size_t partial_floats = kernels::partial_floats(group, shape.head_dim);
  const std::uint32_t together = std::max(1u, kernels_.attention_queries / group);
  const std::size_t tiles = (rows + together - 1) / together;
  const std::uint64_t splits = (keys - 1) / kernels_.attention_split + 1;
  LargeArray<float> partials(tiles * shape.kv_heads * splits * together * partial_floats);
  ThreadScratch scratch(pool_.threads(),
                        kernels_.attention_scratch(shape.head_dim, shape.head_dim));
  const kernels::Attention job = {.heads = shape.heads, .window = 0, .scale = 0.125f};

  const double seconds = median_seconds(shape.layers, [&](std::size_t layer) {
    const kv::memory::SequenceView view = {
        {pages.data(), layout, static_cast<std::uint32_t>(layer)}, table.data()};
    const auto tile_at = [&](std::size_t tile) {
      const std::size_t first = tile * together;
      return kernels::AttentionRows{
          view, q.data() + first * row_floats, depth + first,
          static_cast<std::uint32_t>(std::min<std::size_t>(together, rows - first))};
    };
    pool_.run(tiles * shape.kv_heads * splits, [&](WorkRange range) {
      for (std::size_t item = range.begin; item < range.end; ++item) {
        kernels_.attend_split(job, tile_at(item / splits / shape.kv_heads),
                              static_cast<std::uint32_t>(item / splits % shape.kv_heads),
                              item % splits, scratch.of(range.thread),
                              partials.data() + item * together * partial_floats);
      }
    });
    pool_.run(tiles * shape.kv_heads, [&](WorkRange range) {
      for (std::size_t item = range.begin; item < range.end; ++item) {
        const kernels::AttentionRows tile = tile_at(item / shape.kv_heads);
        float* const first = partials.data() + item * splits * together * partial_floats;
        for (std::uint32_t row = 0; row < tile.rows; ++row) {
          float* const total = first + row * partial_floats;
          const std::uint64_t last = (tile.first_position + row) / kernels_.attention_split;
          for (std::uint64_t split = 1; split <= last; ++split) {
            kernels_.merge_partials(total, total + split * together * partial_floats, group,
                                    shape.head_dim);
          }
          kernels_.normalise_partial(total, group, shape.head_dim,
                                     out.data() + (tile.first_position - depth + row) * row_floats +
                                         item % shape.kv_heads * group * shape.head_dim);
        }
      }
    });
  });
  const std::uint64_t seen = std::uint64_t{rows} * depth + std::uint64_t{rows} * (rows + 1) / 2;
  return {.operation = "attention",
          .shape = fmt::format("{} / {} heads of {} at {}", shape.heads, shape.kv_heads,
                               shape.head_dim, depth),
          .rows = rows,
          .seconds = seconds,
          .bytes = keys * layout.bytes_per_token() / shape.layers,
          .set_bytes = keys * layout.bytes_per_token(),
          .multiply_adds = seen * shape.heads * 2 * shape.head_dim};
}

std::vector<OperationTime> OperationTimer::time_row_operations(const ModelShape& shape) const {
  std::vector<OperationTime> times;
  const std::size_t head_floats = shape.head_dim;
  const std::vector<float> turns(head_floats / 2, 0.70710678f);  // 45 degrees: lengths stay
  const kernels::RopeRow rope = {.cosines = turns.data(),
                                 .sines = turns.data(),
                                 .pairs = turns.size(),
                                 .pairing = kernels::RopePairing::kAdjacent};
  for (const std::uint32_t rows : options_.rows) {
    const auto add = [&](const char* name, std::size_t width, std::size_t floats_moved,
                         const std::function<void(std::size_t)>& row_call) {
      const double seconds = median_seconds(1, [&](std::size_t) {
        pool_.run(rows, [&](WorkRange range) {
          for (std::size_t row = range.begin; row < range.end; ++row) row_call(row);
        });
      });
      const std::uint64_t bytes = std::uint64_t{rows} * floats_moved * sizeof(float);
      times.push_back({.operation = name,
                       .shape = fmt::format("{}", width),
                       .rows = rows,
                       .seconds = seconds,
                       .bytes = bytes,
                       .set_bytes = bytes});
    };
    const std::size_t width = shape.width;
    const std::size_t hidden = shape.hidden_width;
    const std::size_t heads_width = shape.heads * head_floats;
    const LargeArray<float> x = random_floats(rows * width);
    LargeArray<float> y = random_floats(rows * std::max(width, heads_width));
    add("rms norm", width, 2 * width, [&](std::size_t row) {
      kernels_.rms_norm(x.data() + row * width, x.data(), kEpsilon, width, y.data() + row * width);
    });
    add("rope", heads_width, 2 * heads_width, [&](std::size_t row) {
      for (std::size_t head = 0; head < shape.heads; ++head) {
        kernels_.rope(y.data() + row * heads_width + head * head_floats, rope);
      }
    });
    // Gates keep their values, call after call, instead of vanishing.
    LargeArray<float> gate = random_floats(rows * hidden);
    LargeArray<float> up(rows * hidden);
    for (std::size_t i = 0; i < up.size(); ++i) up[i] = 1 + std::exp(-gate[i]);
    add("swiglu", hidden, 3 * hidden, [&](std::size_t row) {
      kernels_.swiglu(gate.data() + row * hidden, up.data() + row * hidden, hidden);
    });
  }
  return times;
}

}  // namespace pagoda::bench
