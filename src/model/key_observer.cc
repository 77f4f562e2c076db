#include "model/key_observer.h"

#include <algorithm>
#include <atomic>

#include "base/assert.h"

namespace pagoda::model {
namespace {

// Query heads of one KV head whose keys are read, and where they need it converted, once; fewer
// where their scores would leave a cache of 1 MiB.
constexpr std::uint32_t kQueriesTogether = 32;
constexpr std::size_t kScoreBytes = std::size_t{1} << 20;

std::size_t keys_of(const ObservedRows& tile) { return tile.rows.first_position + tile.rows.rows; }

std::uint32_t group_of(const ObservedRows& tile) {
  return tile.job.heads / tile.rows.view.layer.layout.kv_heads;
}

template <class T>
void grow(LargeArray<T>& array, std::size_t count) {
  if (array.size() < count) array.resize(count);
}

}  // namespace

ObserverPlan plan_observer(std::uint32_t group, std::size_t stride, std::size_t threads) {
  const std::size_t row_bytes = group * stride * sizeof(float);
  const std::size_t rows =
      std::clamp<std::size_t>(kScoreBytes / row_bytes, 1, std::max(1u, kQueriesTogether / group));
  const std::size_t bytes =
      rows * row_bytes + stride * (sizeof(std::uint32_t) + sizeof(std::uint64_t));
  return {.rows = static_cast<std::uint32_t>(rows),
          .workers = std::clamp<std::size_t>(kObserverBytesMax / bytes, 1, threads)};
}

void KeyObserver::add(ObservedRows tile, std::uint32_t group, std::uint64_t position,
                      const kv::memory::SelectedPages& selected) {
  if (selected.counters.empty() || selected.counters[group] == nullptr) return;
  ASSERT(tile.job.window == 0 && tile.job.keys == 0, "scores of keys that are not seen are unset");
  const kv::memory::LayerView& layer = tile.rows.view.layer;
  tile.counters = selected.counters[group] + layer.layer * selected.layer_stride;
  tile.head_stride = selected.head_stride;
  const std::uint64_t begin = std::max(position, selected.observed_begin);
  const std::uint64_t end = std::min(position + tile.rows.rows, selected.observed_end);
  const std::uint32_t together =
      plan_observer(group_of(tile), stride_of(tile), memories_.size()).rows;
  for (std::uint64_t at = begin; at < end; at += together) {
    ObservedRows part = tile;
    part.rows.q += (at - position) * tile.job.heads * layer.layout.key_dim;
    part.rows.first_position += at - position;
    part.rows.rows = static_cast<std::uint32_t>(std::min<std::uint64_t>(together, end - at));
    tiles_.push_back(part);
  }
}

void KeyObserver::run() {
  if (tiles_.empty()) return;
  std::size_t scores = 0;
  std::size_t stride = 0;
  std::size_t workers = memories_.size();
  for (const ObservedRows& tile : tiles_) {
    stride = std::max(stride, stride_of(tile));
    scores = std::max(scores, tile.rows.rows * group_of(tile) * stride_of(tile));
    workers = std::min(workers, plan_observer(group_of(tile), stride_of(tile), workers).workers);
  }
  const kv::memory::PageLayout& layout = tiles_.front().rows.view.layer.layout;
  const std::size_t scratch = kernels_.attention_scratch(layout.key_dim, layout.value_dim);
  for (std::size_t worker = 0; worker < memories_.size(); ++worker) {
    Memory& memory = memories_[worker];
    if (worker >= workers) {
      memory = {};  // what shorter contexts left
      continue;
    }
    grow(memory.scores, scores);
    grow(memory.scratch, scratch);
    grow(memory.weights, stride);
    grow(memory.sums, stride);
  }
  const std::size_t items = tiles_.size() * layout.kv_heads;
  const auto observe_range = [&](std::size_t begin, std::size_t end, Memory& memory) {
    for (std::size_t item = begin; item < end; ++item) {
      observe(tiles_[item / layout.kv_heads], static_cast<std::uint32_t>(item % layout.kv_heads),
              memory);
    }
  };
  if (workers == memories_.size()) {
    pool_.run(items, [&](WorkRange range) {
      observe_range(range.begin, range.end, memories_[range.thread]);
    });
  } else {
    pool_.run(workers, [&](WorkRange range) {
      for (std::size_t worker = range.begin; worker < range.end; ++worker) {
        const WorkRange share = split_work(items, worker, workers);
        observe_range(share.begin, share.end, memories_[worker]);
      }
    });
  }
  tiles_.clear();
}

std::size_t KeyObserver::stride_of(const ObservedRows& tile) const {
  return (keys_of(tile) / kernels_.attention_split + 1) * kernels_.attention_split;
}

void KeyObserver::observe(const ObservedRows& tile, std::uint32_t kv_head, Memory& memory) const {
  const std::uint32_t group = group_of(tile);
  const std::size_t stride = stride_of(tile);
  const std::size_t sink_floats = kernels::partial_floats(1, tile.rows.view.layer.layout.value_dim);
  for (std::uint64_t split = 0; split * kernels_.attention_split < keys_of(tile); ++split) {
    kernels_.score_split(tile.job, tile.rows, kv_head, split, memory.scratch.data(),
                         {memory.scores.data(), stride});
  }
  std::fill_n(memory.sums.data(), keys_of(tile), 0);
  for (std::uint32_t row = 0; row < tile.rows.rows; ++row) {
    for (std::uint32_t g = 0; g < group; ++g) {
      const float* const sink =
          tile.sinks == nullptr ? nullptr : tile.sinks + (kv_head * group + g) * sink_floats;
      kernels::observe_weights(kernels_, tile.rows.first_position + row + 1, sink,
                               memory.scores.data() + (row * group + g) * stride,
                               memory.weights.data(), memory.sums.data());
    }
  }
  std::uint64_t* const counters = tile.counters + kv_head * tile.head_stride;
  for (std::size_t key = 0; key < keys_of(tile); ++key) {
    std::atomic_ref(counters[key]).fetch_add(memory.sums[key], std::memory_order_relaxed);
  }
}

}  // namespace pagoda::model
