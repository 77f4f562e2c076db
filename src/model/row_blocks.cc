// Many rows: each thread takes blocks of them through whole layers, from one attention to the next.
//
// All that a block becomes on its way (its norms, its hidden values, their operands) stays in the
// cache of one core, and threads wait for each other twice a layer. Weights are read once for every
// block instead, which is a small part of what multiplying them costs.
#include <algorithm>

#include "model/decoder.h"

namespace pagoda::model {
namespace {

constexpr std::size_t kBlockRows = 64;
constexpr std::size_t kBlocksPerThread = 2;  // fewer, and a thread that is done has nothing to take
static_assert(kBlockRows % kernels::kOperandBlock == 0);

std::size_t panels_of(const Projection& projection) {
  return (projection.weight.rows + kernels::kMatmulPanel - 1) / kernels::kMatmulPanel;
}

}  // namespace

// Sets of floats unpack weights for each product: the more rows it has, the better.
bool Decoder::worth_row_blocks() const {
  return kernels_.arithmetic == kernels::Arithmetic::kPairs &&
         places_.size() >= kBlocksPerThread * kBlockRows * pool_.threads();
}

void Decoder::forward_by_row_blocks(const kv::memory::PageBuffer& pages) {
  const std::size_t rows = places_.size();
  const auto for_blocks = [&](auto task) {
    pool_.run((rows + kBlockRows - 1) / kBlockRows, [&](WorkRange range) {
      for (std::size_t block = range.begin; block < range.end; ++block) {
        const std::size_t first = block * kBlockRows;
        task(RowBlock{.first = first,
                      .count = std::min(kBlockRows, rows - first),
                      .slot = range.thread * kBlockRows,
                      .thread = range.thread});
      }
    });
  };
  for (std::uint32_t layer = 0; layer < config_.layers; ++layer) {
    const kv::memory::LayerView view = layer_view(layer, pages);
    for_blocks([&](const RowBlock& block) {
      if (layer > 0) rows_after_attention(weights_->layers[layer - 1], block);
      rows_before_attention(layer, view, block);
    });
    attend(layer, view);
  }
  for_blocks([&](const RowBlock& block) { rows_after_attention(weights_->layers.back(), block); });
}

// All outputs of a projection of the operands in the block's slot.
void Decoder::project_rows(const Output& output, const LargeArray<std::byte>& x,
                           const RowBlock& rows) {
  project_range(output, x.data() + operands_bytes(output.projection->weight.columns, rows.slot),
                rows.count, {0, panels_of(*output.projection), rows.thread});
}

void Decoder::rows_before_attention(std::uint32_t layer, const kv::memory::LayerView& view,
                                    const RowBlock& rows) {
  const LayerWeights& weights = weights_->layers[layer];
  for (std::size_t i = 0; i < rows.count; ++i) {
    normalise_row(weights.attention_norm, rows.first + i, rows.slot + i, rows.thread);
  }
  const auto project_dense = [&](const Projection& projection, LargeArray<float>& y) {
    const std::size_t outputs = projection.weight.rows;
    project_rows({&projection, y.data() + rows.first * outputs, outputs, false}, normed_, rows);
  };
  project_dense(weights.query, query_);
  project_dense(weights.key, key_);
  project_dense(weights.value, value_);
  rotate_and_store(layer, view, {rows.first, rows.first + rows.count, rows.thread});
}

void Decoder::rows_after_attention(const LayerWeights& layer, const RowBlock& rows) {
  const auto add_to_residual = [&](const Projection& projection, const LargeArray<std::byte>& x) {
    project_rows({&projection, residual_.row(rows.first), residual_.stride(), true}, x, rows);
  };
  mix_attended({rows.first, rows.first + rows.count, rows.thread}, rows.slot);
  add_to_residual(layer.attention_output, mixed_);
  for (std::size_t i = 0; i < rows.count; ++i) {
    normalise_row(layer.feed_forward_norm, rows.first + i, rows.slot + i, rows.thread);
  }
  gate_and_up_range(layer, rows, {0, panels_of(layer.gate), rows.thread});
  for (std::size_t row = rows.slot; row < rows.slot + rows.count; ++row) {
    kernels_.to_operand(gate_.row(row), config_.hidden_width, hidden_.data(), row);
  }
  add_to_residual(layer.down, hidden_);
}

}  // namespace pagoda::model
