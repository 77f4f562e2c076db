// The attention half of a decoder layer: project, rotate, store, attend, project back.
#include <algorithm>
#include <cmath>

#include "model/decoder.h"

namespace pagoda::model {

void Decoder::attention_block(std::uint32_t layer, const kv::memory::PageBuffer& pages) {
  const LayerWeights& weights = weights_->layers[layer];
  const std::size_t rows = places_.size();
  const kv::memory::LayerView view = {
      .pages = pages.data(), .layout = page_layout_, .layer = slice_plan_.places[layer].layer};
  normalise(weights.attention_norm);
  const Output inputs[] = {{&weights.query, query_.data(), false},
                           {&weights.key, key_.data(), false},
                           {&weights.value, value_.data(), false}};
  project(inputs, normed_.data(), rows);
  rotate_and_store(layer, view);
  attend(layer, view);
  mix_attended();
  const Output output = {&weights.attention_output, residual_.data(), true};
  project({&output, 1}, mixed_.data(), rows);
}

kv::memory::SequenceView Decoder::sequence_view(std::size_t row, std::uint32_t layer,
                                                const kv::memory::LayerView& view) const {
  return {view, places_[row].sequence->tables[slice_plan_.places[layer].slice]};
}

void Decoder::rotate_and_store(std::uint32_t layer, const kv::memory::LayerView& view) {
  const std::size_t query_width = std::size_t{config_.heads} * config_.key_dim;
  const std::size_t key_width = std::size_t{config_.kv_heads} * config_.key_dim;
  const std::size_t value_width = std::size_t{config_.kv_heads} * config_.value_dim;
  for_rows(places_.size(), [&](WorkRange range) {
    for (std::size_t row = range.begin; row < range.end; ++row) {
      const kernels::RopeRow rope = {.cosines = cosines_.data() + row * rope_.pairs(),
                                     .sines = sines_.data() + row * rope_.pairs(),
                                     .pairs = rope_.pairs(),
                                     .pairing = config_.rope.pairing};
      float* const query = query_.data() + row * query_width;
      float* const key = key_.data() + row * key_width;
      for (std::uint32_t h = 0; h < config_.heads; ++h) {
        kernels_.rope(query + h * config_.key_dim, rope);
      }
      for (std::uint32_t h = 0; h < config_.kv_heads; ++h) {
        kernels_.rope(key + h * config_.key_dim, rope);
      }
      kernels_.store_kv(sequence_view(row, layer, view), places_[row].position, key,
                        value_.data() + row * value_width);
    }
  });
}

void Decoder::attend(std::uint32_t layer, const kv::memory::LayerView& view) {
  list_tiles(layer, view);
  const kernels::Attention job = {.heads = config_.heads,
                                  .window = config_.reach[layer].window,
                                  .scale = 1.0f / std::sqrt(static_cast<float>(config_.key_dim))};
  // Few rows with long pasts keep all threads busy only when their keys are divided. Both ways
  // compute the same partials and merge them in the same order.
  constexpr std::size_t kItemsPerThread = 8;
  if (attention_tiles_.size() * config_.kv_heads < kItemsPerThread * pool_.threads()) {
    attend_by_split(job);
  } else {
    attend_by_tile(job);
  }
}

// As many consecutive tokens of a sequence as the kernels take at once.
void Decoder::list_tiles(std::uint32_t layer, const kv::memory::LayerView& view) {
  const std::uint32_t rows_max = std::max(1u, kernels_.attention_queries / config_.group());
  attention_tiles_.clear();
  for (std::size_t row = 0; row < places_.size();) {
    const SequenceRows& sequence = *places_[row].sequence;
    const std::uint64_t left = sequence.first_position + sequence.rows - places_[row].position;
    const auto rows = static_cast<std::uint32_t>(std::min<std::uint64_t>(rows_max, left));
    attention_tiles_.push_back({.rows = {.view = sequence_view(row, layer, view),
                                         .q = query_.data() + row * config_.heads * config_.key_dim,
                                         .first_position = places_[row].position,
                                         .rows = rows},
                                .first_row = row});
    row += rows;
  }
}

// Merges the partials of one split into the totals of the rows that see it; for the first split a
// row sees, they become its total.
void Decoder::merge_split(const kernels::Attention& job, const AttentionTile& tile,
                          std::uint64_t split, const float* partials, float* totals) const {
  const std::size_t group = config_.group();
  const std::size_t floats = kernels::partial_floats(group, config_.value_dim);
  for (std::uint32_t row = 0; row < tile.rows.rows; ++row) {
    const kernels::SplitRange splits = kernels::visible_splits(
        tile.rows.first_position + row, job.window, kernels_.attention_split);
    if (split < splits.first || split >= splits.last) continue;
    float* const total = totals + row * floats;
    const float* const partial = partials + row * floats;
    if (split > splits.first) {
      kernels_.merge_partials(total, partial, group, config_.value_dim);
    } else if (total != partial) {
      std::copy_n(partial, floats, total);
    }
  }
}

void Decoder::finish_tile(const AttentionTile& tile, std::uint32_t kv_head, const float* totals) {
  const std::size_t group = config_.group();
  const std::size_t width = std::size_t{config_.heads} * config_.value_dim;
  for (std::uint32_t row = 0; row < tile.rows.rows; ++row) {
    kernels_.finish_partial(
        totals + row * kernels::partial_floats(group, config_.value_dim), group, config_.value_dim,
        attended_.data() + (tile.first_row + row) * width + kv_head * group * config_.value_dim);
  }
}

// What all heads attended to, as operands of the output projection.
void Decoder::mix_attended() {
  const std::size_t width = std::size_t{config_.heads} * config_.value_dim;
  for_rows(places_.size(), [&](WorkRange range) {
    for (std::size_t row = range.begin; row < range.end; ++row) {
      kernels_.to_operand(attended_.data() + row * width, width, mixed_.data(), row);
    }
  });
}

// Tiles are dealt out in turn: later ones have more keys to see.
void Decoder::attend_by_tile(const kernels::Attention& job) {
  const std::size_t queries = std::max(kernels_.attention_queries, config_.group());
  const std::size_t floats = kernels::partial_floats(queries, config_.value_dim);
  const std::size_t items = attention_tiles_.size() * config_.kv_heads;
  const std::size_t parts = pool_.threads();
  const auto attend_item = [&](std::size_t item, std::byte* memory) {
    const AttentionTile& tile = attention_tiles_[item / config_.kv_heads];
    const auto kv_head = static_cast<std::uint32_t>(item % config_.kv_heads);
    auto* const totals = reinterpret_cast<float*>(memory);
    float* const partials = totals + floats;
    auto* const scratch = reinterpret_cast<std::byte*>(partials + floats);
    const std::uint64_t last_position = tile.rows.first_position + tile.rows.rows - 1;
    const std::uint64_t first_split =
        kernels::visible_splits(tile.rows.first_position, job.window, kernels_.attention_split)
            .first;
    const std::uint64_t last_split = last_position / kernels_.attention_split;
    for (std::uint64_t split = first_split; split <= last_split; ++split) {
      kernels_.attend_split(job, tile.rows, kv_head, split, scratch, partials);
      merge_split(job, tile, split, partials, totals);
    }
    finish_tile(tile, kv_head, totals);
  };
  pool_.run(parts, [&](WorkRange range) {
    for (std::size_t part = range.begin; part < range.end; ++part) {
      for (std::size_t item = part; item < items; item += parts) {
        attend_item(item, scratch(range.thread));
      }
    }
  });
}

void Decoder::attend_by_split(const kernels::Attention& job) {
  const std::size_t queries = std::max(kernels_.attention_queries, config_.group());
  const std::size_t floats = kernels::partial_floats(queries, config_.value_dim);
  split_items_.clear();
  for (std::uint32_t index = 0; index < attention_tiles_.size(); ++index) {
    const kernels::AttentionRows& rows = attention_tiles_[index].rows;
    const std::uint64_t first =
        kernels::visible_splits(rows.first_position, job.window, kernels_.attention_split).first;
    const std::uint64_t last = (rows.first_position + rows.rows - 1) / kernels_.attention_split;
    for (std::uint32_t kv_head = 0; kv_head < config_.kv_heads; ++kv_head) {
      for (std::uint64_t split = first; split <= last; ++split) {
        split_items_.push_back({index, kv_head, split});
      }
    }
  }
  if (partials_.size() < split_items_.size() * floats) {
    partials_.resize(split_items_.size() * floats);
  }
  pool_.run(split_items_.size(), [&](WorkRange range) {
    for (std::size_t i = range.begin; i < range.end; ++i) {
      const SplitItem& item = split_items_[i];
      kernels_.attend_split(job, attention_tiles_[item.tile].rows, item.kv_head, item.split,
                            scratch(range.thread), partials_.data() + i * floats);
    }
  });
  for (std::size_t i = 0; i < split_items_.size();) {
    const SplitItem& item = split_items_[i];
    const AttentionTile& tile = attention_tiles_[item.tile];
    float* const totals = partials_.data() + i * floats;
    for (; i < split_items_.size() && split_items_[i].tile == item.tile &&
           split_items_[i].kv_head == item.kv_head;
         ++i) {
      merge_split(job, tile, split_items_[i].split, partials_.data() + i * floats, totals);
    }
    finish_tile(tile, item.kv_head, totals);
  }
}

}  // namespace pagoda::model
