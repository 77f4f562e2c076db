// Attention tile by tile. A tile's keys and values are made floats once and serve every query
// head of the group.
//
// Scratch: keys [tile, key_dim] | values [tile, value_dim] | scores [tile]
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "kernels/fp32/f32x8.h"
#include "kernels/fp32/kernels.h"
#include "kv/memory/codec.h"

namespace pagoda::kernels::fp32 {
namespace {

constexpr float kNothing = -std::numeric_limits<float>::infinity();

// Elements side by side go eight at a time, others one by one.
void widen_row(kv::memory::Element element, kv::memory::Row row, std::size_t count, float* values) {
  std::size_t i = 0;
  if (row.contiguous()) {
    switch (element) {
      case kv::memory::Element::kF32:
        std::memcpy(values, row.data, count * sizeof(float));
        return;
      case kv::memory::Element::kF16:
        for (; i + kLanes <= count; i += kLanes) store(values + i, load_fp16(row.data + 2 * i));
        break;
      case kv::memory::Element::kBF16:
        for (; i + kLanes <= count; i += kLanes) store(values + i, load_bf16(row.data + 2 * i));
        break;
      default:
        break;
    }
    row.data += i * kv::memory::unit_bytes(element);
  }
  if (i < count) kv::memory::decode_row(element, row, count - i, values + i);
}

float dot(const float* a, const float* b, std::size_t count) {
  F32x8 lanes = broadcast(0.0f);
  std::size_t i = 0;
  for (; i + kLanes <= count; i += kLanes) lanes = fma(load(a + i), load(b + i), lanes);
  return fold_with_tail(lanes, a + i, b + i, count - i);
}

void scale_row(float* values, std::size_t count, float factor) {
  std::size_t i = 0;
  for (; i + kLanes <= count; i += kLanes) store(values + i, load(values + i) * broadcast(factor));
  for (; i < count; ++i) values[i] *= factor;
}

// sum += weight * values
void add_weighted(float* sum, const float* values, std::size_t count, float weight) {
  std::size_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    store(sum + i, fma(broadcast(weight), load(values + i), load(sum + i)));
  }
  for (; i < count; ++i) sum[i] = std::fma(weight, values[i], sum[i]);
}

// One tile's visible keys, counted from the tile's start.
struct TileRange {
  std::size_t begin;
  std::size_t end;
};

// scores: [tile], those outside the range being -infinity, so that their weight is exactly 0.
void add_tile(float* partial, const float* values, std::size_t value_dim, TileRange range,
              float* scores) {
  F32x8 highest = load(scores);
  for (std::size_t i = kLanes; i < kFp32KeyTile; i += kLanes) {
    highest = max(highest, load(scores + i));
  }
  float lanes[kLanes];
  store(lanes, highest);
  float maximum = partial[0];
  for (const float lane : lanes) maximum = std::max(maximum, lane);

  const float shrink = kernels::exp_fixed(partial[0] - maximum);
  F32x8 weight_lanes = broadcast(0.0f);
  for (std::size_t i = 0; i < kFp32KeyTile; i += kLanes) {
    const F32x8 weights = exp_fixed(load(scores + i) - broadcast(maximum));
    weight_lanes = weight_lanes + weights;
    store(scores + i, weights);
  }
  partial[0] = maximum;
  partial[1] = std::fma(partial[1], shrink, fold_sum(weight_lanes));
  scale_row(partial + 2, value_dim, shrink);
  for (std::size_t i = range.begin; i < range.end; ++i) {
    add_weighted(partial + 2, values + i * value_dim, value_dim, scores[i]);
  }
}

// scores [tile] of one query head with a tile's keys of the range.
void score_tile(const Attention& job, const float* q, const float* keys, std::size_t key_dim,
                TileRange range, float* scores) {
  const float scale = job.softmax_scale();
  for (std::size_t i = range.begin; i < range.end; ++i) {
    scores[i] = dot(q, keys + i * key_dim, key_dim) * scale;
  }
  if (job.cap > 0) soft_cap(scores + range.begin, range.end - range.begin, job.scale, job.cap);
}

// HeadRows finds rows of one KV head. Where they stand one behind the other, as in this set's own
// pages, it computes the place of the first alone.
class HeadRows {
 public:
  HeadRows(const kv::memory::SequenceView& view, std::uint32_t head)
      : view_(view),
        head_(head),
        block_tokens_(view.layer.layout.block_tokens),
        page_bytes_(view.layer.layout.page_bytes()),
        keys_(first_of(view.layer.layout.elements.keys, view.layer.layout.key_row_bytes(),
                       view.layer.layout.key_row(view.layer.pages, view.layer.layer, head, 0))),
        values_(first_of(view.layer.layout.elements.values, view.layer.layout.value_row_bytes(),
                         view.layer.layout.value_row(view.layer.pages, view.layer.layer, head, 0))),
        is_linear_(view.layer.layout.key_order == kv::memory::KeyOrder::kRows &&
                   view.layer.layout.value_order == kv::memory::ValueOrder::kRows &&
                   !view.layer.layout.values_in_keys) {}

  kv::memory::Row key(std::uint64_t position) const {
    return is_linear_ ? at(keys_, position) : view_.key_row(head_, position);
  }
  kv::memory::Row value(std::uint64_t position) const {
    return is_linear_ ? at(values_, position) : view_.value_row(head_, position);
  }

 private:
  struct First {
    kv::memory::Row row;  // of token 0 of page 0
    std::size_t row_bytes;
    std::size_t scale_bytes;  // from a token's first scale to the next one's
  };
  static First first_of(kv::memory::Element element, std::size_t row_bytes, kv::memory::Row row) {
    return {row, row_bytes, kv::memory::scale_bytes(element)};
  }
  kv::memory::Row at(const First& first, std::uint64_t position) const {
    const std::size_t page = view_.blocks[position / block_tokens_].value() * page_bytes_;
    const std::size_t token = position % block_tokens_;
    kv::memory::Row row = first.row;
    row.data += page + token * first.row_bytes;
    row.scale += page + token * first.scale_bytes;
    return row;
  }

  const kv::memory::SequenceView& view_;
  std::uint32_t head_;
  std::uint32_t block_tokens_;
  std::size_t page_bytes_;
  First keys_;
  First values_;
  bool is_linear_;
};

// One token's query heads of one KV head.
struct Query {
  const Attention& job;
  const kv::memory::SequenceView& view;
  const float* q;  // [group, key_dim]
  std::uint32_t kv_head;
  std::uint64_t position;
  std::uint64_t split;
};

void attend_token(const Query& query, float* scratch, float* partial) {
  const kv::memory::PageLayout& layout = query.view.layer.layout;
  const std::size_t key_dim = layout.key_dim;
  const std::size_t value_dim = layout.value_dim;
  const std::uint32_t group = query.job.heads / layout.kv_heads;
  const std::uint64_t first = std::max<std::uint64_t>(first_visible_key(query.job, query.position),
                                                      query.split * kFp32SplitKeys);
  const std::uint64_t last = std::min<std::uint64_t>(visible_keys_end(query.job, query.position),
                                                     (query.split + 1) * kFp32SplitKeys);
  const HeadRows rows(query.view, query.kv_head);
  float* const keys = scratch;
  float* const values = keys + kFp32KeyTile * key_dim;
  float* const scores = values + kFp32KeyTile * value_dim;

  for (std::uint32_t g = 0; g < group; ++g) {
    float* const start = partial + g * (2 + value_dim);
    start[0] = kNothing;
    std::fill_n(start + 1, 1 + value_dim, 0.0f);
  }
  for (std::uint64_t tile = first / kFp32KeyTile * kFp32KeyTile; tile < last;
       tile += kFp32KeyTile) {
    const TileRange range = {
        static_cast<std::size_t>(std::max(first, tile) - tile),
        static_cast<std::size_t>(std::min<std::uint64_t>(last - tile, kFp32KeyTile))};
    for (std::size_t i = range.begin; i < range.end; ++i) {
      widen_row(layout.elements.keys, rows.key(tile + i), key_dim, keys + i * key_dim);
      widen_row(layout.elements.values, rows.value(tile + i), value_dim, values + i * value_dim);
    }
    for (std::uint32_t g = 0; g < group; ++g) {
      std::fill_n(scores, kFp32KeyTile, kNothing);
      score_tile(query.job, query.q + g * key_dim, keys, key_dim, range, scores);
      add_tile(partial + g * (2 + value_dim), values, value_dim, range, scores);
    }
  }
}

}  // namespace

std::size_t attention_scratch(std::size_t key_dim, std::size_t value_dim) {
  return kFp32KeyTile * (key_dim + value_dim + 1) * sizeof(float);
}

void attend_split(const Attention& job, const AttentionRows& rows, std::uint32_t kv_head,
                  std::uint64_t split, std::byte* scratch, float* partials) {
  const kv::memory::PageLayout& layout = rows.view.layer.layout;
  const std::uint32_t group = job.heads / layout.kv_heads;
  for (std::uint32_t row = 0; row < rows.rows; ++row) {
    const float* const q = rows.q + (row * job.heads + kv_head * group) * layout.key_dim;
    attend_token({job, rows.view, q, kv_head, rows.first_position + row, split},
                 reinterpret_cast<float*>(scratch),
                 partials + row * partial_floats(group, layout.value_dim));
  }
}

void score_split(const Attention& job, const AttentionRows& rows, std::uint32_t kv_head,
                 std::uint64_t split, std::byte* scratch, ScoreRows scores) {
  const kv::memory::PageLayout& layout = rows.view.layer.layout;
  const std::uint32_t group = job.heads / layout.kv_heads;
  const std::uint64_t last_position = rows.first_position + rows.rows - 1;
  const std::uint64_t first =
      std::max<std::uint64_t>(first_visible_key(job, rows.first_position), split * kFp32SplitKeys);
  const std::uint64_t last =
      std::min<std::uint64_t>(visible_keys_end(job, last_position), (split + 1) * kFp32SplitKeys);
  const HeadRows head_rows(rows.view, kv_head);
  auto* const keys = reinterpret_cast<float*>(scratch);
  for (std::uint64_t tile = first / kFp32KeyTile * kFp32KeyTile; tile < last;
       tile += kFp32KeyTile) {
    const std::uint64_t tile_end = std::min<std::uint64_t>(last, tile + kFp32KeyTile);
    for (std::uint64_t key = std::max(first, tile); key < tile_end; ++key) {
      widen_row(layout.elements.keys, head_rows.key(key), layout.key_dim,
                keys + (key - tile) * layout.key_dim);
    }
    for (std::uint32_t row = 0; row < rows.rows; ++row) {
      const std::uint64_t position = rows.first_position + row;
      const std::uint64_t begin = std::max(first_visible_key(job, position), tile);
      const std::uint64_t end = std::min(visible_keys_end(job, position), tile_end);
      if (begin >= end) continue;
      const float* const q = rows.q + (row * job.heads + kv_head * group) * layout.key_dim;
      for (std::uint32_t g = 0; g < group; ++g) {
        score_tile(job, q + g * layout.key_dim, keys, layout.key_dim, {begin - tile, end - tile},
                   scores.data + (row * group + g) * scores.stride + tile);
      }
    }
  }
}

void merge_partials(float* left, const float* right, std::size_t group, std::size_t value_dim) {
  for (std::size_t g = 0; g < group; ++g) {
    float* const a = left + g * (2 + value_dim);
    const float* const b = right + g * (2 + value_dim);
    const float maximum = std::max(a[0], b[0]);
    const float keep = kernels::exp_fixed(a[0] - maximum);
    const float take = kernels::exp_fixed(b[0] - maximum);
    a[0] = maximum;
    scale_row(a + 1, 1 + value_dim, keep);
    add_weighted(a + 1, b + 1, 1 + value_dim, take);
  }
}

void normalise_partial(const float* partial, std::size_t group, std::size_t value_dim, float* out) {
  for (std::size_t g = 0; g < group; ++g) {
    const float* const p = partial + g * (2 + value_dim);
    for (std::size_t d = 0; d < value_dim; ++d) out[g * value_dim + d] = p[2 + d] / p[1];
  }
}

}  // namespace pagoda::kernels::fp32
