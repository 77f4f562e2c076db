#include "kernels/ref/attention.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "kernels/exp.h"
#include "kernels/ref/lanes.h"
#include "kv/memory/codec.h"

namespace pagoda::kernels::ref {
namespace {

constexpr float kNothing = -std::numeric_limits<float>::infinity();

// One query head's softmax over the keys seen so far in a split.
struct Running {
  float& maximum;
  float& sum;
  float* values;  // [value_dim]
};

Running running_of(float* partial, std::size_t head, std::size_t value_dim) {
  float* const start = partial + head * (2 + value_dim);
  return {start[0], start[1], start + 2};
}

// Adds keys [begin, end) of one tile, whose scores are given by position within the tile.
void add_tile(Running run, const kv::memory::SequenceView& view, std::uint32_t kv_head,
              std::uint64_t begin, std::uint64_t end, const float* scores, float* value) {
  const kv::memory::PageLayout& layout = view.layer.layout;
  float maximum = run.maximum;
  for (std::uint64_t key = begin; key < end; ++key) {
    maximum = std::max(maximum, scores[key % kAttentionTile]);
  }
  const float shrink = exp_fixed(run.maximum - maximum);
  run.maximum = maximum;
  for (std::uint32_t d = 0; d < layout.value_dim; ++d) run.values[d] *= shrink;

  LaneSum weights;
  for (std::uint64_t key = begin; key < end; ++key) {
    const float weight = exp_fixed(scores[key % kAttentionTile] - maximum);
    weights.add(key, weight);
    kv::memory::decode_row(layout.element, view.value_row(kv_head, key), layout.value_dim, value);
    for (std::uint32_t d = 0; d < layout.value_dim; ++d) {
      run.values[d] = std::fma(weight, value[d], run.values[d]);
    }
  }
  run.sum = std::fma(run.sum, shrink, weights.fold());
}

}  // namespace

void attend_split(const Attention& job, const AttentionRow& row, std::uint32_t kv_head,
                  std::uint64_t split, float* scratch, float* partial) {
  const kv::memory::PageLayout& layout = row.view.layer.layout;
  const std::uint32_t group = job.heads / layout.kv_heads;
  const std::uint64_t first =
      std::max(first_visible_key(row.position, job.window), split * kAttentionSplit);
  const std::uint64_t last = std::min(row.position + 1, (split + 1) * kAttentionSplit);
  float* const key_row = scratch;
  float* const value_row = scratch + layout.key_dim;
  for (std::uint32_t g = 0; g < group; ++g) {
    const Running run = running_of(partial, g, layout.value_dim);
    run.maximum = kNothing;
    run.sum = 0.0f;
    std::fill_n(run.values, layout.value_dim, 0.0f);
    const float* const q = row.q + (kv_head * group + g) * layout.key_dim;
    std::array<float, kAttentionTile> scores = {};
    for (std::uint64_t begin = first; begin < last;) {
      const std::uint64_t end = std::min(last, (begin / kAttentionTile + 1) * kAttentionTile);
      for (std::uint64_t key = begin; key < end; ++key) {
        kv::memory::decode_row(layout.element, row.view.key_row(kv_head, key), layout.key_dim,
                               key_row);
        scores[key % kAttentionTile] = dot(q, key_row, layout.key_dim) * job.scale;
      }
      add_tile(run, row.view, kv_head, begin, end, scores.data(), value_row);
      begin = end;
    }
  }
}

void merge_partials(float* left, const float* right, std::size_t group, std::size_t value_dim) {
  for (std::size_t g = 0; g < group; ++g) {
    const Running a = running_of(left, g, value_dim);
    const float* const b = right + g * (2 + value_dim);
    const float maximum = std::max(a.maximum, b[0]);
    const float keep = exp_fixed(a.maximum - maximum);
    const float take = exp_fixed(b[0] - maximum);
    a.maximum = maximum;
    a.sum = std::fma(b[1], take, a.sum * keep);
    for (std::size_t d = 0; d < value_dim; ++d) {
      a.values[d] = std::fma(b[2 + d], take, a.values[d] * keep);
    }
  }
}

void finish_partial(const float* partial, std::size_t group, std::size_t value_dim, float* out) {
  for (std::size_t g = 0; g < group; ++g) {
    const float* const p = partial + g * (2 + value_dim);
    for (std::size_t d = 0; d < value_dim; ++d) out[g * value_dim + d] = p[2 + d] / p[1];
  }
}

}  // namespace pagoda::kernels::ref
