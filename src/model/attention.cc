// The attention half of a decoder layer: project, rotate, store, attend, project back.
#include <algorithm>
#include <cmath>
#include <limits>
#include <ranges>

#include "base/elementary.h"
#include "model/decoder.h"

namespace pagoda::model {
namespace {

constexpr std::size_t kItemsPerThread = 8;  // attention items per thread that balance the load
constexpr std::size_t kLineFloats = kCacheLineBytes / sizeof(float);

float query_factor(const QueryScale& scale, std::uint64_t position) {
  const auto contexts = static_cast<double>(position / scale.context);
  return static_cast<float>(1.0 + double{scale.slope} * natural_log(1.0 + contexts));
}

}  // namespace

void Decoder::attention_block(std::uint32_t layer, const kv::memory::PageBuffer& pages) {
  const LayerWeights& weights = weights_->layers[layer];
  const std::size_t rows = batch_tokens_.size();
  const kv::memory::LayerView view = {
      .pages = pages.data(), .layout = page_layout_, .layer = group_plan_.locations[layer].layer};
  normalise(weights.attention_norm);
  if (latent_attention_) {
    latent_attention_->project(
        weights, normed_.data(), rows, [&](std::size_t row) { return rope_row(layer, row); },
        query_.data(), key_.data());
  } else {
    const auto dense = [&](const Projection& projection, LargeArray<float>& y) {
      return Product{&projection, normed_.data(), rows, y.data(), projection.weight.rows};
    };
    const Product products[] = {dense(weights.query, query_), dense(weights.key, key_),
                                dense(weights.value, value_)};
    matmuls_.run(products);
    rotate(layer);
  }
  store(layer, view);
  attend(layer, view);
  if (latent_attention_) {
    latent_attention_->mix(weights.latent, attended_.data(), rows, mixed_.data());
  } else {
    mix_attended();
  }
  add_branch(weights.attention_output, mixed_.data(), weights.attention_output_norm);
}

kv::memory::SequenceView Decoder::sequence_view(std::size_t row, std::uint32_t layer,
                                                const kv::memory::LayerView& view) const {
  return {view, batch_tokens_[row].sequence->tables[group_plan_.locations[layer].group]};
}

// Norms span a head or all heads: what the weight spans.
void Decoder::normalise_heads(float* heads, std::uint32_t count,
                              const std::vector<float>& weight) const {
  const std::size_t width = std::size_t{count} * config_.key_dim;
  for (std::size_t at = 0; at < width && !weight.empty(); at += weight.size()) {
    kernels_.rms_norm(heads + at, weight.data(), config_.norm_epsilon, weight.size(), heads + at);
  }
}

// The rotation of a layer at a row's position; of a layer that has none, of no pair.
kernels::RopeRow Decoder::rope_row(std::uint32_t layer, std::size_t row) const {
  if (config_.rope_of(layer) == kNoRope) return {};
  const BatchRope& rope = ropes_[config_.rope_of(layer)];
  const std::size_t pairs = rope.table.pairs();
  return {.cosines = rope.cosines.data() + row * pairs,
          .sines = rope.sines.data() + row * pairs,
          .pairs = pairs,
          .pairing = config_.ropes[config_.rope_of(layer)].pairing};
}

void Decoder::rotate(std::uint32_t layer) {
  const LayerWeights& weights = weights_->layers[layer];
  const auto prepare = [&](float* heads, std::uint32_t count, const std::vector<float>& norm,
                           const kernels::RopeRow& rope) {
    normalise_heads(heads, count, norm);
    for (std::uint32_t h = 0; h < count; ++h) kernels_.rope(heads + h * config_.key_dim, rope);
  };
  matmuls_.for_rows(batch_tokens_.size(), [&](WorkRange range) {
    for (std::size_t row = range.begin; row < range.end; ++row) {
      const kernels::RopeRow rope = rope_row(layer, row);
      prepare(query_.data() + row * config_.heads * config_.key_dim, config_.heads,
              weights.query_norm, rope);
      prepare(key_.data() + row * config_.kv_heads * config_.key_dim, config_.kv_heads,
              weights.key_norm, rope);
    }
  });
}

// Scales queries by position where the model does that, and stores keys and values.
void Decoder::store(std::uint32_t layer, const kv::memory::LayerView& view) {
  const std::size_t query_width = std::size_t{config_.heads} * config_.key_dim;
  const std::size_t key_width = std::size_t{config_.kv_heads} * config_.key_dim;
  const std::size_t value_width = std::size_t{config_.kv_heads} * config_.value_dim;
  const float limit = kernels::first_infinite(kernels_.numerics, page_layout_.element);
  matmuls_.for_rows(batch_tokens_.size(), [&](WorkRange range) {
    for (std::size_t row = range.begin; row < range.end; ++row) {
      float* const query = query_.data() + row * query_width;
      const float* const key = key_.data() + row * key_width;
      if (config_.query_scale) {
        const float factor = query_factor(*config_.query_scale, batch_tokens_[row].position);
        for (std::size_t i = 0; i < query_width; ++i) query[i] *= factor;
      }
      if (!kernels::all_below(query, query_width, limit)) {
        std::fill_n(query, query_width, std::numeric_limits<float>::quiet_NaN());
        nonfinite_rows_[row] = 1;
      }
      // A latent is its own value.
      const float* const value = latent_attention_ ? key : value_.data() + row * value_width;
      if (!kernels_.store_kv(sequence_view(row, layer, view), batch_tokens_[row].position, key,
                             value)) {
        nonfinite_rows_[row] = 1;
      }
    }
  });
}

void Decoder::attend(std::uint32_t layer, const kv::memory::LayerView& view) {
  list_tiles(layer, view);
  const kernels::Attention job = {.heads = config_.heads,
                                  .window = config_.attention[layer].window,
                                  .scale = config_.score_scale(),
                                  .cap = config_.score_cap};
  // Few rows with long contexts keep all threads busy only when their keys are split. Both ways
  // compute the same partials and merge them in the same order.
  if (batch_tokens_.size() * config_.kv_heads < kItemsPerThread * pool_.threads()) {
    attend_by_split(job);
  } else {
    attend_by_tile(job);
  }
}

// Returns how many consecutive tokens of a sequence attend together: as many as the kernels take at
// once, unless threads would be left idle.
std::uint32_t Decoder::rows_together() const {
  constexpr std::size_t kQueriesWorthACall = 16;
  const std::size_t share =
      batch_tokens_.size() * config_.kv_heads / (kItemsPerThread * pool_.threads());
  const std::size_t rows = std::max(share, kQueriesWorthACall / config_.group());
  return static_cast<std::uint32_t>(
      std::clamp<std::size_t>(rows, 1, std::max(1u, kernels_.attention_queries / config_.group())));
}

void Decoder::list_tiles(std::uint32_t layer, const kv::memory::LayerView& view) {
  const std::uint32_t rows_max = rows_together();
  const float* const sinks = sinks_.empty() ? nullptr : sinks_[layer].data();
  attention_tiles_.clear();
  for (std::size_t row = 0; row < batch_tokens_.size();) {
    const SequenceRows& sequence = *batch_tokens_[row].sequence;
    const std::uint64_t left =
        sequence.first_position + sequence.rows - batch_tokens_[row].position;
    const auto rows = static_cast<std::uint32_t>(std::min<std::uint64_t>(rows_max, left));
    attention_tiles_.push_back({.rows = {.view = sequence_view(row, layer, view),
                                         .q = query_.data() + row * config_.heads * config_.key_dim,
                                         .first_position = batch_tokens_[row].position,
                                         .rows = rows},
                                .first_row = row,
                                .sinks = sinks});
    row += rows;
  }
}

// Merges the partials of one split into the totals of the rows that see it; for the first split
// that a row sees, they become its total. Later rows begin and end no earlier than those before
// them, so that rows which have seen a split before are adjacent.
void Decoder::merge_split(const kernels::Attention& job, const AttentionTile& tile,
                          std::uint64_t split, const float* partials, float* totals) const {
  const std::size_t floats = kernels::partial_floats(config_.group(), config_.value_dim);
  const auto splits_of = [&](std::uint32_t row) {
    return kernels::visible_splits(tile.rows.first_position + row, job.window,
                                   kernels_.attention_split);
  };
  const auto rows_until = [&](auto holds) {
    return *std::ranges::partition_point(std::views::iota(0u, tile.rows.rows), holds);
  };
  const std::uint32_t begin = rows_until([&](auto row) { return splits_of(row).last <= split; });
  const std::uint32_t fresh = rows_until([&](auto row) { return splits_of(row).first < split; });
  const std::uint32_t end = rows_until([&](auto row) { return splits_of(row).first <= split; });
  if (begin < fresh) {
    kernels_.merge_partials(totals + begin * floats, partials + begin * floats,
                            (fresh - begin) * config_.group(), config_.value_dim);
  }
  const std::uint32_t copied = std::max(begin, fresh);
  if (copied < end && totals != partials) {
    std::copy(partials + copied * floats, partials + end * floats, totals + copied * floats);
  }
}

// A sink is a partial result of its own: a score and its weight of 1, without values. It comes
// last, whatever the splits before it.
void Decoder::finish_tile(const AttentionTile& tile, std::uint32_t kv_head, float* totals) {
  const std::size_t group = config_.group();
  const std::size_t width = std::size_t{config_.heads} * config_.value_dim;
  const std::size_t floats = kernels::partial_floats(group, config_.value_dim);
  for (std::uint32_t row = 0; row < tile.rows.rows; ++row) {
    float* const total = totals + row * floats;
    if (tile.sinks != nullptr) {
      kernels_.merge_partials(total, tile.sinks + kv_head * floats, group, config_.value_dim);
    }
    kernels_.normalise_partial(
        total, group, config_.value_dim,
        attended_.data() + (tile.first_row + row) * width + kv_head * group * config_.value_dim);
  }
}

// Packs the attention output of all heads as activations of the output projection.
void Decoder::mix_attended() {
  const std::size_t width = std::size_t{config_.heads} * config_.value_dim;
  matmuls_.for_rows(batch_tokens_.size(), [&](WorkRange range) {
    for (std::size_t row = range.begin; row < range.end; ++row) {
      kernels_.pack_activations(attended_.data() + row * width, width, mixed_.data(), row);
    }
  });
}

void Decoder::attend_by_tile(const kernels::Attention& job) {
  const std::size_t queries = std::max(kernels_.attention_queries, config_.group());
  const std::size_t floats = kernels::partial_floats(queries, config_.value_dim);
  const std::size_t items = attention_tiles_.size() * config_.kv_heads;
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
    kernels::Attention ahead = job;
    for (std::uint64_t split = first_split; split <= last_split; ++split) {
      const bool more = split < last_split;
      const kernels::KeySplit next = {more ? kv_head : kv_head + 1, more ? split + 1 : first_split};
      ahead.next = next.kv_head < config_.kv_heads ? &next : nullptr;
      kernels_.attend_split(ahead, tile.rows, kv_head, split, scratch, partials);
      merge_split(job, tile, split, partials, totals);
    }
    finish_tile(tile, kv_head, totals);
  };
  pool_.run(items, [&](WorkRange range) {
    for (std::size_t item = range.begin; item < range.end; ++item) {
      attend_item(item, matmuls_.scratch(range.thread));
    }
  });
}

// Fills split_items_ and allocates their partials.
void Decoder::list_splits(const kernels::Attention& job) {
  split_items_.clear();
  std::size_t floats = 0;
  for (std::uint32_t index = 0; index < attention_tiles_.size(); ++index) {
    const kernels::AttentionRows& rows = attention_tiles_[index].rows;
    const std::uint64_t first =
        kernels::visible_splits(rows.first_position, job.window, kernels_.attention_split).first;
    const std::uint64_t last = (rows.first_position + rows.rows - 1) / kernels_.attention_split;
    // All heads of a split come before the next split, because they are adjacent in their pages.
    for (std::uint64_t split = first; split <= last; ++split) {
      for (std::uint32_t kv_head = 0; kv_head < config_.kv_heads; ++kv_head) {
        split_items_.push_back({index, {kv_head, split}, floats});
        floats += kernels::partial_floats(rows.rows * config_.group(), config_.value_dim);
        floats = (floats + kLineFloats - 1) / kLineFloats * kLineFloats;
      }
    }
  }
  if (partials_.size() < floats) partials_.resize(floats);
}

void Decoder::attend_by_split(const kernels::Attention& job) {
  list_splits(job);
  pool_.run(split_items_.size(), [&](WorkRange range) {
    kernels::Attention ahead = job;
    for (std::size_t i = range.begin; i < range.end; ++i) {
      const SplitItem& item = split_items_[i];
      const bool more = i + 1 < split_items_.size() && split_items_[i + 1].tile == item.tile;
      ahead.next = more ? &split_items_[i + 1].keys : nullptr;
      kernels_.attend_split(ahead, attention_tiles_[item.tile].rows, item.keys.kv_head,
                            item.keys.split, matmuls_.scratch(range.thread),
                            partials_.data() + item.first_partial);
    }
  });
  for (std::size_t first = 0; first < split_items_.size();) {
    const std::uint32_t index = split_items_[first].tile;
    std::size_t end = first;
    while (end < split_items_.size() && split_items_[end].tile == index) ++end;
    merge_tile(job, {split_items_.data() + first, split_items_.data() + end});
    first = end;
  }
}

// Merges the partials of one tile, split by split.
void Decoder::merge_tile(const kernels::Attention& job, std::span<const SplitItem> items) {
  const AttentionTile& tile = attention_tiles_[items.front().tile];
  for (std::uint32_t kv_head = 0; kv_head < config_.kv_heads; ++kv_head) {
    float* const totals = partials_.data() + items[kv_head].first_partial;
    for (std::size_t i = kv_head; i < items.size(); i += config_.kv_heads) {
      merge_split(job, tile, items[i].keys.split, partials_.data() + items[i].first_partial,
                  totals);
    }
    finish_tile(tile, kv_head, totals);
  }
}

}  // namespace pagoda::model
