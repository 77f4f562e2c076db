#include "kernels/ref/attention.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "kernels/exp.h"
#include "kernels/ref/lane_reduction.h"
#include "kernels/ref/rows.h"
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
    maximum = std::max(maximum, scores[key % kFp32KeyTile]);
  }
  const float shrink = exp_fixed(run.maximum - maximum);
  run.maximum = maximum;
  for (std::uint32_t d = 0; d < layout.value_dim; ++d) run.values[d] *= shrink;

  LaneReduction weights;
  for (std::uint64_t key = begin; key < end; ++key) {
    const float weight = exp_fixed(scores[key % kFp32KeyTile] - maximum);
    weights.add(key, weight);
    kv::memory::decode_row(layout.elements.values, view.value_row(kv_head, key), layout.value_dim,
                           value);
    for (std::uint32_t d = 0; d < layout.value_dim; ++d) {
      run.values[d] = std::fma(weight, value[d], run.values[d]);
    }
  }
  run.sum = std::fma(run.sum, shrink, weights.fold());
}

struct Query {
  const Attention& job;
  const kv::memory::SequenceView& view;
  std::uint32_t kv_head;
  std::uint64_t position;
  std::uint64_t split;
};

float score_of(const Attention& job, const kv::memory::SequenceView& view, std::uint32_t kv_head,
               std::uint64_t position, const float* q, float* key) {
  const kv::memory::PageLayout& layout = view.layer.layout;
  kv::memory::decode_row(layout.elements.keys, view.key_row(kv_head, position), layout.key_dim,
                         key);
  float score = dot(q, key, layout.key_dim) * job.softmax_scale();
  if (job.cap > 0) soft_cap(&score, 1, job.scale, job.cap);
  return score;
}

// scratch: a key row and a value row
void attend_one(const Query& query, const float* q, float* scratch, Running run) {
  const kv::memory::PageLayout& layout = query.view.layer.layout;
  const std::uint64_t first = std::max<std::uint64_t>(first_visible_key(query.job, query.position),
                                                      query.split * kFp32SplitKeys);
  const std::uint64_t last = std::min<std::uint64_t>(visible_keys_end(query.job, query.position),
                                                     (query.split + 1) * kFp32SplitKeys);
  run.maximum = kNothing;
  run.sum = 0.0f;
  std::fill_n(run.values, layout.value_dim, 0.0f);
  std::array<float, kFp32KeyTile> scores = {};
  for (std::uint64_t begin = first; begin < last;) {
    const std::uint64_t end = std::min(last, (begin / kFp32KeyTile + 1) * kFp32KeyTile);
    for (std::uint64_t key = begin; key < end; ++key) {
      scores[key % kFp32KeyTile] = score_of(query.job, query.view, query.kv_head, key, q, scratch);
    }
    add_tile(run, query.view, query.kv_head, begin, end, scores.data(), scratch + layout.key_dim);
    begin = end;
  }
}

}  // namespace

std::size_t attention_scratch(std::size_t key_dim, std::size_t value_dim) {
  return (key_dim + value_dim) * sizeof(float);
}

void attend_split(const Attention& job, const AttentionRows& rows, std::uint32_t kv_head,
                  std::uint64_t split, std::byte* scratch, float* partials) {
  const kv::memory::PageLayout& layout = rows.view.layer.layout;
  const std::uint32_t group = job.heads / layout.kv_heads;
  for (std::uint32_t row = 0; row < rows.rows; ++row) {
    for (std::uint32_t g = 0; g < group; ++g) {
      const std::size_t head = row * job.heads + kv_head * group + g;
      const Running run = running_of(partials, row * group + g, layout.value_dim);
      attend_one({job, rows.view, kv_head, rows.first_position + row, split},
                 rows.q + head * layout.key_dim, reinterpret_cast<float*>(scratch), run);
    }
  }
}

void score_split(const Attention& job, const AttentionRows& rows, std::uint32_t kv_head,
                 std::uint64_t split, std::byte* scratch, ScoreRows scores) {
  const kv::memory::PageLayout& layout = rows.view.layer.layout;
  const std::uint32_t group = job.heads / layout.kv_heads;
  for (std::uint32_t row = 0; row < rows.rows; ++row) {
    const std::uint64_t position = rows.first_position + row;
    const std::uint64_t first =
        std::max<std::uint64_t>(first_visible_key(job, position), split * kFp32SplitKeys);
    const std::uint64_t last =
        std::min<std::uint64_t>(visible_keys_end(job, position), (split + 1) * kFp32SplitKeys);
    for (std::uint32_t g = 0; g < group; ++g) {
      const float* const q =
          rows.q + (std::size_t{row} * job.heads + kv_head * group + g) * layout.key_dim;
      float* const out = scores.data + (row * group + g) * scores.stride;
      for (std::uint64_t key = first; key < last; ++key) {
        out[key] = score_of(job, rows.view, kv_head, key, q, reinterpret_cast<float*>(scratch));
      }
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

void normalise_partial(const float* partial, std::size_t group, std::size_t value_dim, float* out) {
  for (std::size_t g = 0; g < group; ++g) {
    const float* const p = partial + g * (2 + value_dim);
    for (std::size_t d = 0; d < value_dim; ++d) out[g * value_dim + d] = p[2 + d] / p[1];
  }
}

}  // namespace pagoda::kernels::ref
