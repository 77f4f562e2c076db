// The attention half of a decoder layer: project, rotate, store, attend, project back.
#include <algorithm>
#include <cmath>

#include "model/decoder.h"

namespace pagoda::model {

void Decoder::attention_block(std::uint32_t layer, const kv::memory::PageBuffer& pages) {
  const LayerWeights& weights = weights_.layers[layer];
  const std::size_t rows = places_.size();
  const kv::memory::LayerView view = {
      .pages = pages.data(), .layout = page_layout_, .layer = slice_plan_.places[layer].layer};
  normalise(weights.attention_norm);
  project(weights.query, normed_.data(), rows, query_.data(), false);
  project(weights.key, normed_.data(), rows, key_.data(), false);
  project(weights.value, normed_.data(), rows, value_.data(), false);
  rotate_and_store(layer, view);
  attend(layer, view);
  project(weights.attention_output, attended_.data(), rows, residual_.data(), true);
}

kv::memory::SequenceView Decoder::sequence_view(std::size_t row, std::uint32_t layer,
                                                const kv::memory::LayerView& view) const {
  return {view, places_[row].sequence->tables[slice_plan_.places[layer].slice]};
}

void Decoder::rotate_and_store(std::uint32_t layer, const kv::memory::LayerView& view) {
  const std::size_t query_width = std::size_t{config_.heads} * config_.key_dim;
  const std::size_t key_width = std::size_t{config_.kv_heads} * config_.key_dim;
  const std::size_t value_width = std::size_t{config_.kv_heads} * config_.value_dim;
  pool_.run(places_.size(), [&](WorkRange range) {
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
  attention_rows_.clear();
  for (std::size_t row = 0; row < places_.size(); ++row) {
    attention_rows_.push_back({.view = sequence_view(row, layer, view),
                               .q = query_.data() + row * config_.heads * config_.key_dim,
                               .out = attended_.data() + row * config_.heads * config_.value_dim,
                               .position = places_[row].position});
  }
  const kernels::Attention job = {.heads = config_.heads,
                                  .window = config_.reach[layer].window,
                                  .scale = 1.0f / std::sqrt(static_cast<float>(config_.key_dim))};
  // Few rows with long pasts keep all threads busy only when their keys are divided. Both ways
  // compute the same partials and merge them in the same order.
  constexpr std::size_t kItemsPerThread = 8;
  if (places_.size() * config_.kv_heads < kItemsPerThread * pool_.threads()) {
    attend_by_split(job);
  } else {
    attend_by_row(job);
  }
}

void Decoder::attend_by_row(const kernels::Attention& job) {
  const std::size_t group = config_.group();
  const std::size_t partial_floats = kernels::partial_floats(group, config_.value_dim);
  pool_.run(attention_rows_.size() * config_.kv_heads, [&](WorkRange range) {
    float* const total = scratch(range.thread);
    float* const partial = total + partial_floats;
    float* const tile = partial + partial_floats;
    for (std::size_t item = range.begin; item < range.end; ++item) {
      const kernels::AttentionRow& row = attention_rows_[item / config_.kv_heads];
      const auto kv_head = static_cast<std::uint32_t>(item % config_.kv_heads);
      const kernels::SplitRange splits = kernels::visible_splits(row.position, job.window);
      kernels_.attend_split(job, row, kv_head, splits.first, tile, total);
      for (std::uint64_t split = splits.first + 1; split < splits.last; ++split) {
        kernels_.attend_split(job, row, kv_head, split, tile, partial);
        kernels_.merge_partials(total, partial, group, config_.value_dim);
      }
      kernels_.finish_partial(total, group, config_.value_dim,
                              row.out + kv_head * group * config_.value_dim);
    }
  });
}

void Decoder::attend_by_split(const kernels::Attention& job) {
  const std::size_t group = config_.group();
  const std::size_t partial_floats = kernels::partial_floats(group, config_.value_dim);
  split_items_.clear();
  for (std::uint32_t row = 0; row < attention_rows_.size(); ++row) {
    const auto splits = kernels::visible_splits(attention_rows_[row].position, job.window);
    for (std::uint32_t kv_head = 0; kv_head < config_.kv_heads; ++kv_head) {
      for (std::uint64_t split = splits.first; split < splits.last; ++split) {
        split_items_.push_back({row, kv_head, split});
      }
    }
  }
  if (partials_.size() < split_items_.size() * partial_floats) {
    partials_.resize(split_items_.size() * partial_floats);
  }
  pool_.run(split_items_.size(), [&](WorkRange range) {
    for (std::size_t i = range.begin; i < range.end; ++i) {
      const SplitItem& item = split_items_[i];
      kernels_.attend_split(job, attention_rows_[item.row], item.kv_head, item.split,
                            scratch(range.thread), partials_.data() + i * partial_floats);
    }
  });
  for (std::size_t i = 0; i < split_items_.size();) {
    const SplitItem& item = split_items_[i];
    float* const total = partials_.data() + i * partial_floats;
    for (++i; i < split_items_.size() && split_items_[i].row == item.row &&
              split_items_[i].kv_head == item.kv_head;
         ++i) {
      kernels_.merge_partials(total, partials_.data() + i * partial_floats, group,
                              config_.value_dim);
    }
    kernels_.finish_partial(
        total, group, config_.value_dim,
        attention_rows_[item.row].out + item.kv_head * group * config_.value_dim);
  }
}

}  // namespace pagoda::model
