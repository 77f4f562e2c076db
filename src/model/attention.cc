// The attention half of a decoder layer: project, rotate, store, attend, project back.
#include <algorithm>
#include <cmath>
#include <limits>

#include "model/decoder.h"
#include "model/rotation.h"

namespace pagoda::model {
namespace {

constexpr std::size_t kItemsPerThread = 8;  // attention items per thread that balance the load
constexpr std::size_t kPartialsMax = std::size_t{64} << 20;  // floats: 256 MiB
constexpr std::size_t kLineFloats = kCacheLineBytes / sizeof(float);

}  // namespace

LayerAttention Decoder::layer_attention(std::uint32_t layer,
                                        const kv::memory::PageBuffer& pages) const {
  const HeadShare& share = division_.heads(layer);
  const kv::memory::LayerLocation at = group_plan_.locations[config_.kv_layer_of(layer)];
  return {
      .job = {.heads = share.heads,
              .window = config_.attention[layer].window,
              .scale = config_.score_scale(),
              .cap = config_.score_cap},
      .heads = share.shape,
      .queries = share.heads,
      .group = share.group,
      .view = {.pages = pages.data(), .layout = group_plan_.layouts[at.group], .layer = at.layer},
      .kv_group = at.group,
      .sinks = sinks_.empty() ? nullptr : sinks_[layer].data()};
}

void Decoder::attention_block(std::uint32_t layer, const kv::memory::PageBuffer& pages) {
  const LayerWeights& weights = weights_->layers[layer];
  const std::size_t rows = batch_tokens_.size();
  const LayerAttention attention = layer_attention(layer, pages);
  normalise(weights.attention_norm, normed_);
  if (latent_attention_) {
    latent_attention_->project(
        weights, normed_.data(), rows, [&](std::size_t row) { return ropes_.row(layer, row); },
        query_.data(), key_.data());
  } else {
    project(layer, attention);
  }
  if (attention.job.window == 0) {
    sink_queries_.finish(layer, attention.view.layout, attention.queries, latent_attention_,
                         query_.data(), matmuls_);
  }
  rotate_rows(attention.view.layout, attention.queries,
              {query_.data(), key_.data(), value_.data(), rows}, matmuls_);
  check_queries(attention);
  if (config_.kv_layer_of(layer) == layer && attention.heads.kv_heads > 0) store(attention);
  if (attention.queries > 0) attend(attention);
  if (latent_attention_) {
    const FloatRows& outputs = latent_attention_->raise(weights.latent, attended_.data(), rows);
    mix(layer, outputs.row(0), outputs.stride());
  } else {
    mix(layer, attended_.data(), std::size_t{attention.queries} * attention.heads.value_dim);
  }
  add_branch(weights.attention_output, mixed_.data(), weights.attention_output_norm);
}

// Projections of no rows are left out: of layers that keep no rows, and of values that are keys.
void Decoder::project(std::uint32_t layer, const LayerAttention& attention) {
  const HeadShape& heads = attention.heads;
  const LayerWeights& weights = weights_->layers[layer];
  const std::size_t rows = batch_tokens_.size();
  const auto dense = [&](const Projection& projection, LargeArray<float>& y) {
    return Product{&projection, normed_.data(), rows, y.data(), projection.weight.rows};
  };
  const Product products[] = {dense(weights.query, query_), dense(weights.key, key_),
                              dense(weights.value, value_)};
  matmuls_.run(products);
  if (weights.key.weight.rows > 0 && weights.value.weight.rows == 0) {
    std::copy_n(key_.data(), rows * heads.kv_heads * heads.key_dim, value_.data());
  }
  if (exchange_ && config_.qk_norm == QkNormSpan::kAllHeads) normalise_over_ranks(layer);
  norm_and_rotate(layer, attention);
}

// Norms that span all heads need those of all ranks.
void Decoder::normalise_over_ranks(std::uint32_t layer) {
  const LayerDivision& cuts = division_.layer(layer);
  const LayerWeights& weights = weights_->layers[layer];
  const std::size_t rows = batch_tokens_.size();
  const float epsilon = config_.norm_epsilon;
  exchange_->normalise(cuts.queries, rows, weights.query_norm, epsilon, query_.data());
  if (cuts.keys.all() == 0) return;
  exchange_->normalise(cuts.keys, rows, weights.key_norm, epsilon, key_.data());
}

kv::memory::SequenceView Decoder::sequence_view(std::size_t row,
                                                const LayerAttention& layer) const {
  return {layer.view, batch_tokens_[row].sequence->tables[layer.kv_group]};
}

// Norms span a head or all heads: what the weight spans.
void Decoder::normalise_heads(float* heads, std::size_t width,
                              const std::vector<float>& weight) const {
  for (std::size_t at = 0; at < width && !weight.empty(); at += weight.size()) {
    kernels_.rms_norm(heads + at, weight.data(), config_.norm_epsilon, weight.size(), heads + at);
  }
}

void Decoder::norm_and_rotate(std::uint32_t layer, const LayerAttention& attention) {
  const HeadShape& heads = attention.heads;
  const LayerWeights& weights = weights_->layers[layer];
  const bool has_keys = weights.key.weight.rows > 0;
  // Those of all heads were done where there are several ranks.
  const bool is_normed = exchange_ && config_.qk_norm == QkNormSpan::kAllHeads;
  const auto rotate = [&](float* first, std::uint32_t count, const kernels::RopeRow& rope) {
    for (std::uint32_t h = 0; h < count; ++h) kernels_.rope(first + h * heads.key_dim, rope);
  };
  matmuls_.for_rows(batch_tokens_.size(), [&](WorkRange range) {
    for (std::size_t row = range.begin; row < range.end; ++row) {
      const kernels::RopeRow rope = ropes_.row(layer, row);
      const std::size_t query_width = std::size_t{attention.queries} * heads.key_dim;
      float* const query = query_.data() + row * query_width;
      if (!is_normed) normalise_heads(query, query_width, weights.query_norm);
      if (sees_gap(attention, row)) {
        float* const to_sinks = sink_queries_.query(row, query_width);
        std::copy_n(query, query_width, to_sinks);
        rotate(to_sinks, attention.queries, sink_queries_.rope(layer, row));
      }
      rotate(query, attention.queries, rope);
      if (!has_keys) continue;
      const std::size_t key_width = std::size_t{heads.kv_heads} * heads.key_dim;
      float* const key = key_.data() + row * key_width;
      if (!is_normed) normalise_heads(key, key_width, weights.key_norm);
      rotate(key, heads.kv_heads, rope);
      const std::size_t value_width = std::size_t{heads.kv_heads} * heads.value_dim;
      float* const values = value_.data() + row * value_width;
      for (std::size_t at = 0; at < value_width && !ones_.empty(); at += heads.value_dim) {
        kernels_.rms_norm(values + at, ones_.data(), config_.norm_epsilon, heads.value_dim,
                          values + at);
      }
    }
  });
}

void Decoder::check_queries(const LayerAttention& layer) {
  const std::size_t width = std::size_t{layer.queries} * layer.heads.key_dim;
  matmuls_.for_rows(batch_tokens_.size(), [&](WorkRange range) {
    for (std::size_t row = range.begin; row < range.end; ++row) {
      check_query(layer, row, batch_tokens_[row].position, query_.data() + row * width);
      if (!sees_gap(layer, row)) continue;
      check_query(layer, row, sink_queries_.position(row), sink_queries_.query(row, width));
    }
  });
}

// Scales a query of the row by position where the model does that; one that is not finite becomes
// NaN.
void Decoder::check_query(const LayerAttention& layer, std::size_t row, std::uint64_t position,
                          float* query) {
  const std::size_t width = std::size_t{layer.queries} * layer.heads.key_dim;
  const float limit = kernels::first_infinite(kernels_.numerics, layer.view.layout.elements.keys);
  if (config_.query_scale) {
    const float factor = query_factor(*config_.query_scale, position);
    for (std::size_t i = 0; i < width; ++i) query[i] *= factor;
  }
  if (kernels::all_below(query, width, limit)) return;
  std::fill_n(query, width, std::numeric_limits<float>::quiet_NaN());
  nonfinite_rows_[row] = 1;
}

void Decoder::store(const LayerAttention& layer) {
  const std::size_t key_width = std::size_t{layer.heads.kv_heads} * layer.heads.key_dim;
  const std::size_t value_width = std::size_t{layer.heads.kv_heads} * layer.heads.value_dim;
  matmuls_.for_rows(batch_tokens_.size(), [&](WorkRange range) {
    for (std::size_t row = range.begin; row < range.end; ++row) {
      const float* const key = key_.data() + row * key_width;
      // A latent is its own value.
      const float* const value = latent_attention_ ? key : value_.data() + row * value_width;
      const kv::memory::SequenceView view = sequence_view(row, layer);
      const std::uint64_t slot = slot_of(row, layer);
      // Unused bytes of a page are zeroed, so that nothing of its block's earlier use is kept or
      // sent to a store.
      if (layer.view.layer == 0 && slot % layer.view.layout.block_tokens == 0) {
        view.clear_unused(slot);
      }
      if (!kernels_.store_kv(view, slot, key, value)) nonfinite_rows_[row] = 1;
    }
  });
}

void Decoder::attend(const LayerAttention& layer) {
  list_tiles(layer);
  // Few rows with long contexts keep all threads busy only when their keys are split. Both ways
  // compute the same partials and merge them in the same order.
  if (batch_tokens_.size() * layer.heads.kv_heads < kItemsPerThread * pool_.threads() &&
      list_splits(layer)) {
    attend_by_split(layer);
  } else {
    attend_by_tile(layer);
  }
  key_observer_.run();
}

// Returns how many consecutive tokens of a sequence attend together: as many as the kernels take at
// once, unless threads would be left idle.
std::uint32_t Decoder::rows_together(const LayerAttention& layer) const {
  constexpr std::size_t kQueriesWorthACall = 16;
  const std::size_t share =
      batch_tokens_.size() * layer.heads.kv_heads / (kItemsPerThread * pool_.threads());
  const std::size_t rows = std::max(share, kQueriesWorthACall / layer.group);
  return static_cast<std::uint32_t>(
      std::clamp<std::size_t>(rows, 1, std::max(1u, kernels_.attention_queries / layer.group)));
}

void Decoder::list_tiles(const LayerAttention& layer) {
  const std::uint32_t rows_max = rows_together(layer);
  attention_tiles_.clear();
  for (std::size_t row = 0; row < batch_tokens_.size();) {
    const SequenceRows& sequence = *batch_tokens_[row].sequence;
    const std::uint64_t left =
        sequence.first_position + sequence.rows - batch_tokens_[row].position;
    const auto rows = static_cast<std::uint32_t>(std::min<std::uint64_t>(rows_max, left));
    kernels::Attention job = layer.job;
    if (job.window == 0) {
      job.window = sequence.policy.window;
      job.sinks = sequence.policy.sinks;
    }
    attention_tiles_.push_back(
        {.job = job,
         .rows = {.view = sequence_view(row, layer),
                  .q = query_.data() + row * layer.queries * layer.heads.key_dim,
                  .first_position = slot_of(row, layer),
                  .rows = rows},
         .first_row = row,
         .sinks = layer.sinks});
    if (layer.job.window == 0) {
      key_observer_.add({.job = job, .rows = attention_tiles_.back().rows, .sinks = layer.sinks},
                        layer.kv_group, batch_tokens_[row].position, sequence.selected);
    }
    row += rows;
  }
}

// A learned sink is a partial result of its own: a score and its weight of 1, without values. It
// comes last, whatever the splits before it. `memory` has room for the tile's partials and for
// kernels.
void Decoder::finish_tile(const LayerAttention& layer, const AttentionTile& tile,
                          std::uint32_t kv_head, float* totals, std::byte* memory) {
  if (layer.job.window == 0) {
    sink_queries_.attend(tile.job, tile.rows, tile.first_row, kv_head, totals, memory);
  }
  const std::size_t group = layer.group;
  const std::size_t width = std::size_t{layer.queries} * layer.heads.value_dim;
  const std::size_t floats = kernels::partial_floats(group, layer.heads.value_dim);
  for (std::uint32_t row = 0; row < tile.rows.rows; ++row) {
    float* const total = totals + row * floats;
    if (tile.sinks != nullptr) {
      kernels_.merge_partials(total, tile.sinks + kv_head * floats, group, layer.heads.value_dim);
    }
    float* const out =
        attended_.data() + (tile.first_row + row) * width + kv_head * group * layer.heads.value_dim;
    kernels_.normalise_partial(total, group, layer.heads.value_dim, out);
    rotate_back(layer.view.layout, out, group);
  }
}

// Packs the outputs of all heads, of which this rank has some, as activations of the output
// projection.
void Decoder::mix(std::uint32_t layer, const float* outputs, std::size_t stride) {
  const std::size_t rows = batch_tokens_.size();
  const Cut& cut = division_.layer(layer).mixed;
  if (exchange_) exchange_->share(cut, rows, outputs, stride);
  matmuls_.for_rows(rows, [&](WorkRange range) {
    auto* const whole = reinterpret_cast<float*>(matmuls_.scratch(range.thread));
    for (std::size_t row = range.begin; row < range.end; ++row) {
      if (exchange_) exchange_->read_row(row, whole);
      kernels_.pack_activations(exchange_ ? whole : outputs + row * stride, cut.all(),
                                mixed_.data(), row);
    }
  });
}

void Decoder::attend_by_tile(const LayerAttention& layer) {
  const std::size_t queries = std::max(kernels_.attention_queries, layer.group);
  const std::size_t floats = kernels::partial_floats(queries, layer.heads.value_dim);
  const std::size_t items = attention_tiles_.size() * layer.heads.kv_heads;
  const auto attend_item = [&](std::size_t item, std::byte* memory) {
    const AttentionTile& tile = attention_tiles_[item / layer.heads.kv_heads];
    const auto kv_head = static_cast<std::uint32_t>(item % layer.heads.kv_heads);
    auto* const totals = reinterpret_cast<float*>(memory);
    float* const partials = totals + floats;
    auto* const scratch = reinterpret_cast<std::byte*>(partials + floats);
    const std::uint64_t last_position = tile.rows.first_position + tile.rows.rows - 1;
    const std::uint64_t first_split =
        kernels::visible_splits(tile.job, tile.rows.first_position, kernels_.attention_split).first;
    const std::uint64_t last_split = last_position / kernels_.attention_split;
    kernels::Attention ahead = tile.job;
    for (std::uint64_t split = first_split; split <= last_split; ++split) {
      const bool more = split < last_split;
      const kernels::KeySplit next = {more ? kv_head : kv_head + 1, more ? split + 1 : first_split};
      ahead.next = next.kv_head < layer.heads.kv_heads ? &next : nullptr;
      kernels_.attend_split(ahead, tile.rows, kv_head, split, scratch, partials);
      merge_split(kernels_, layer, tile, split, partials, totals);
    }
    finish_tile(layer, tile, kv_head, totals, reinterpret_cast<std::byte*>(partials));
  };
  pool_.run(items, [&](WorkRange range) {
    for (std::size_t item = range.begin; item < range.end; ++item) {
      attend_item(item, matmuls_.scratch(range.thread));
    }
  });
}

// Fills split_items_ and allocates their partials. False: those would take too much memory, as they
// do with many rows of latents in long contexts.
bool Decoder::list_splits(const LayerAttention& layer) {
  split_items_.clear();
  std::size_t floats = 0;
  for (std::uint32_t index = 0; index < attention_tiles_.size(); ++index) {
    const kernels::AttentionRows& rows = attention_tiles_[index].rows;
    const std::uint64_t first =
        kernels::visible_splits(attention_tiles_[index].job, rows.first_position,
                                kernels_.attention_split)
            .first;
    const std::uint64_t last = (rows.first_position + rows.rows - 1) / kernels_.attention_split;
    // All heads of a split come before the next split, because they are adjacent in their pages.
    for (std::uint64_t split = first; split <= last; ++split) {
      for (std::uint32_t kv_head = 0; kv_head < layer.heads.kv_heads; ++kv_head) {
        split_items_.push_back({index, {kv_head, split}, floats});
        floats += kernels::partial_floats(rows.rows * layer.group, layer.heads.value_dim);
        floats = (floats + kLineFloats - 1) / kLineFloats * kLineFloats;
      }
    }
  }
  if (floats > kPartialsMax) return false;
  if (partials_.size() < floats) partials_.resize(floats);
  return true;
}

// Computes the partials of split_items_ on all threads, then merges them tile by tile.
void Decoder::attend_by_split(const LayerAttention& layer) {
  pool_.run(split_items_.size(), [&](WorkRange range) {
    for (std::size_t i = range.begin; i < range.end; ++i) {
      const SplitItem& item = split_items_[i];
      const AttentionTile& tile = attention_tiles_[item.tile];
      kernels::Attention ahead = tile.job;
      const bool more = i + 1 < split_items_.size() && split_items_[i + 1].tile == item.tile;
      ahead.next = more ? &split_items_[i + 1].keys : nullptr;
      kernels_.attend_split(ahead, tile.rows, item.keys.kv_head, item.keys.split,
                            matmuls_.scratch(range.thread), partials_.data() + item.first_partial);
    }
  });
  for (std::size_t first = 0; first < split_items_.size();) {
    const std::uint32_t index = split_items_[first].tile;
    std::size_t end = first;
    while (end < split_items_.size() && split_items_[end].tile == index) ++end;
    merge_tile(layer, {split_items_.data() + first, split_items_.data() + end});
    first = end;
  }
}

// Merges the partials of one tile, split by split.
void Decoder::merge_tile(const LayerAttention& layer, std::span<const SplitItem> items) {
  const AttentionTile& tile = attention_tiles_[items.front().tile];
  for (std::uint32_t kv_head = 0; kv_head < layer.heads.kv_heads; ++kv_head) {
    float* const totals = partials_.data() + items[kv_head].first_partial;
    for (std::size_t i = kv_head; i < items.size(); i += layer.heads.kv_heads) {
      merge_split(kernels_, layer, tile, items[i].keys.split,
                  partials_.data() + items[i].first_partial, totals);
    }
    finish_tile(layer, tile, kv_head, totals, matmuls_.scratch(0));
  }
}

}  // namespace pagoda::model
