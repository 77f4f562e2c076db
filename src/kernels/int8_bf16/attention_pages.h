// The keys and values of one KV head in one split, as right-hand sides of products: where they
// stand in their pages if that will do, else as bf16 copies in the scratch.
#pragma once

#include "kernels/int8_bf16/simd.h"
#include "kernels/ops.h"
#include "kv/memory/codec.h"

namespace pagoda::kernels::PAGODA_ISA {

inline constexpr std::size_t kKeyTile = 16;
inline constexpr std::size_t kCallQueries = 32;  // that share a load of keys: two tiles
inline constexpr std::size_t kStepDimensions = 32;
inline constexpr std::size_t kSplitTiles = kInt8Bf16SplitKeys / kKeyTile;
inline constexpr std::size_t kLine = 64;

constexpr std::size_t round_up(std::size_t count, std::size_t unit) {
  return (count + unit - 1) / unit * unit;
}

// A right-hand side: rows of 64 bytes, `stride` apart.
struct KvTile {
  const std::byte* data;
  std::size_t stride;
};

// The parts of one thread's scratch memory.
struct AttentionScratch {
  AttentionScratch(std::size_t key_dim, std::size_t value_dim, std::byte* scratch)
      : steps(round_up(key_dim, kStepDimensions) / kStepDimensions),
        value_columns(round_up(value_dim, 16)),
        queries(reinterpret_cast<std::uint16_t*>(scratch)),
        scores(reinterpret_cast<float*>(scratch + steps * 2048)),
        sums(scores + kCallQueries * kInt8Bf16SplitKeys),
        keys(reinterpret_cast<std::byte*>(sums + kCallQueries * value_columns)),
        values(keys + kSplitTiles * key_tile_bytes()) {}

  std::size_t steps;          // of 32 dimensions of a key
  std::size_t value_columns;  // value_dim up to a multiple of 16
  std::uint16_t* queries;     // [32][steps * 32] bf16
  float* scores;              // [32][256]; weights take their place
  float* sums;                // [32][value_columns], where partials have no such columns
  std::byte* keys;            // [split / 16] tiles of [steps * 16 pairs][16][2]
  std::byte* values;          // [split / 16] tiles of [8 pairs][value_columns][2]

  // [256] bf16 at the beginning of the query's scores: the first cache holds no more than those.
  std::uint16_t* weights(std::size_t query) const {
    return reinterpret_cast<std::uint16_t*>(scores + query * kInt8Bf16SplitKeys);
  }
  static constexpr std::size_t kWeightStride = kInt8Bf16SplitKeys * sizeof(float);
  std::size_t key_tile_bytes() const { return steps * 1024; }
  std::size_t value_tile_bytes() const { return 8 * 4 * value_columns; }
  std::size_t bytes(const std::byte* scratch) const {
    return static_cast<std::size_t>(values + kSplitTiles * value_tile_bytes() - scratch);
  }
};

// The right-hand sides of a split by tile of keys, counted from the split's first.
struct KvTiles {
  KvTile keys[kSplitTiles];
  KvTile values[kSplitTiles];
};

// Rows outside [begin, end) are not visible to any query of the call.
class SplitPages {
 public:
  SplitPages(const kv::memory::SequenceView& view, std::uint32_t head, std::uint64_t begin,
             std::uint64_t end, const AttentionScratch& parts)
      : view_(view),
        layout_(view.layer.layout),
        head_(head),
        begin_(begin),
        end_(end),
        parts_(parts),
        whole_tiles_(layout_.block_tokens % kKeyTile == 0),
        key_columns_(whole_tiles_ && layout_.key_order == kv::memory::KeyOrder::kColumns &&
                     layout_.key_dim % kStepDimensions == 0),
        value_pairs_(whole_tiles_ && !layout_.values_in_keys &&
                     layout_.value_order == kv::memory::ValueOrder::kTokenPairs &&
                     layout_.value_dim % 16 == 0),
        values_of_columns_(key_columns_ && layout_.values_in_keys && layout_.value_dim % 16 == 0),
        page_bytes_(layout_.page_bytes()),
        first_keys_(layout_.key_offset(view.layer.layer, head, 0)),
        first_values_(layout_.value_offset(view.layer.layer, head, 0)) {}

  // The tiles of [begin, end).
  void fill(KvTiles& sides) const {
    const std::uint64_t first = begin_ / kKeyTile * kKeyTile;
    BlockSlot place = slot_of(first);
    for (std::uint64_t tile = first; tile < end_; tile += kKeyTile, next_tile(place)) {
      const std::size_t index = tile % kInt8Bf16SplitKeys / kKeyTile;
      const KvTile key_tile = keys(tile, place, parts_.keys + index * parts_.key_tile_bytes());
      std::byte* const value_target = parts_.values + index * parts_.value_tile_bytes();
      sides.keys[index] = key_tile;
      sides.values[index] = values_of_columns_ ? values_of_keys(tile, key_tile, value_target)
                                               : values(tile, place, value_target);
    }
  }

  // Up to `most` tiles of the keys of a split before `end`, where they are read in place; how many.
  std::size_t find_keys(KeySplit split, std::uint64_t end, KvTile* tiles, std::size_t most) const {
    if (!key_columns_ || !in_place()) return 0;
    const std::size_t first = layout_.key_offset(view_.layer.layer, split.kv_head, 0);
    std::size_t count = 0;
    std::uint64_t tile = split.split * kInt8Bf16SplitKeys;
    BlockSlot place = slot_of(tile);
    for (; count < most && tile < end; tile += kKeyTile, next_tile(place)) {
      tiles[count++] = {page(place) + first + key_bytes(place), key_stride()};
    }
    return count;
  }

 private:
  using Element = kv::memory::Element;

  // A position's block and its place there.
  struct BlockSlot {
    std::uint64_t block;
    std::uint32_t token;
  };
  BlockSlot slot_of(std::uint64_t key) const {
    return {key / layout_.block_tokens, static_cast<std::uint32_t>(key % layout_.block_tokens)};
  }
  // Moves a place to the next tile. A block must hold whole tiles.
  void next_tile(BlockSlot& place) const {
    place.token += kKeyTile;
    if (place.token < layout_.block_tokens) return;
    place.token = 0;
    ++place.block;
  }
  std::byte* page(BlockSlot place) const {
    return view_.layer.pages + view_.blocks[place.block].value() * page_bytes_;
  }
  // The bytes from the first token's key, or value, to that of the place.
  std::size_t key_bytes(BlockSlot place) const {
    return 2 * place.token * kv::memory::element_bytes(layout_.element);
  }
  std::size_t value_bytes(BlockSlot place) const { return place.token * layout_.value_row_bytes(); }

  // Keys [tile, tile + 16): [dimension pair][key][2]. What is not visible may be anything: it stays
  // in its own column of scores.
  KvTile keys(std::uint64_t tile, BlockSlot place, std::byte* target) const {
    if (!key_columns_) return gather_keys(tile, target);
    const std::byte* const first = page(place) + first_keys_ + key_bytes(place);
    if (in_place()) return {first, key_stride()};
    for (std::size_t pair = 0; pair < layout_.key_dim / 2; ++pair) {
      convert(first + pair * key_stride(), 2 * kKeyTile, target + pair * kLine);
    }
    return {target, kLine};
  }

  // Values of keys [tile, tile + 16): [key pair][dimension][2]. What is not visible is 0.
  KvTile values(std::uint64_t tile, BlockSlot place, std::byte* target) const {
    if (!value_pairs_) return gather_values(tile, target);
    const bool all_visible = begin_ <= tile && tile + kKeyTile <= end_;
    const std::byte* const first = page(place) + first_values_ + value_bytes(place);
    if (in_place() && all_visible) return {first, 4 * layout_.value_dim};
    convert(first, kKeyTile * layout_.value_dim, target);
    if (!all_visible) hide_values(tile, target);
    return {target, 4 * layout_.value_dim};
  }

  // The same out of a tile of keys: [dimension pair][key][2] becomes [key pair][dimension][2].
  KvTile values_of_keys(std::uint64_t tile, KvTile keys, std::byte* target) const {
    const std::size_t dimensions = layout_.value_dim;
    for (std::size_t pair = 0; pair < dimensions / 2; ++pair) {
      std::uint32_t words[kKeyTile];  // of one key: two dimensions
      __builtin_memcpy(words, keys.data + pair * keys.stride, sizeof(words));
      for (std::size_t key = 0; key < kKeyTile; key += 2) {
        const std::uint32_t out[2] = {(words[key] & 0xFFFF) | words[key + 1] << 16,
                                      words[key] >> 16 | (words[key + 1] & 0xFFFF0000u)};
        __builtin_memcpy(half_of(target, key / 2, 2 * pair, dimensions, 0), out, sizeof(out));
      }
    }
    if (!(begin_ <= tile && tile + kKeyTile <= end_)) hide_values(tile, target);
    return {target, 4 * dimensions};
  }

  bool visible(std::uint64_t key) const { return begin_ <= key && key < end_; }
  bool in_place() const { return layout_.element == Element::kBF16; }
  // Bytes between two pairs of dimensions.
  std::size_t key_stride() const {
    return 2 * layout_.block_tokens * kv::memory::element_bytes(layout_.element);
  }
  static std::byte* half_of(std::byte* pairs, std::size_t row, std::size_t column,
                            std::size_t columns, std::size_t second) {
    return pairs + 4 * (row * columns + column) + 2 * second;
  }

  // `count` elements as bf16 factors.
  void convert(const std::byte* from, std::size_t count, std::byte* to) const {
    if (layout_.element == Element::kBF16) {
      __builtin_memcpy(to, from, 2 * count);
      return;
    }
    auto* const halves = reinterpret_cast<std::uint16_t*>(to);
    for (std::size_t i = 0; i < count; i += kLanes) {
      const F32x16 values = layout_.element == Element::kF16
                                ? load_fp16(reinterpret_cast<const std::uint16_t*>(from) + i)
                                : load(reinterpret_cast<const float*>(from) + i);
      store_bf16(halves + i, values);
    }
  }

  // A pair of keys is a line of words: its first key in the low halves, its second in the high
  // ones.
  void hide_values(std::uint64_t tile, std::byte* target) const {
    for (std::size_t pair = 0; pair < kKeyTile / 2; ++pair) {
      const std::uint32_t stays = (visible(tile + 2 * pair) ? 0x0000FFFFu : 0) |
                                  (visible(tile + 2 * pair + 1) ? 0xFFFF0000u : 0);
      if (stays == 0xFFFFFFFFu) continue;
      auto* const words = reinterpret_cast<std::uint32_t*>(target) + pair * layout_.value_dim;
      for (std::size_t d = 0; d < layout_.value_dim; ++d) words[d] &= stays;
    }
  }

  KvTile gather_keys(std::uint64_t tile, std::byte* target) const {
    __builtin_memset(target, 0, parts_.key_tile_bytes());
    for (std::size_t key = 0; key < kKeyTile; ++key) {
      if (!visible(tile + key)) continue;
      const kv::memory::Row row = view_.key_row(head_, tile + key);
      for (std::size_t d = 0; d < layout_.key_dim; ++d) {
        put_half(row, d, half_of(target, d / 2, key, kKeyTile, d % 2));
      }
    }
    return {target, kLine};
  }

  KvTile gather_values(std::uint64_t tile, std::byte* target) const {
    __builtin_memset(target, 0, parts_.value_tile_bytes());
    for (std::size_t key = 0; key < kKeyTile; ++key) {
      if (!visible(tile + key)) continue;
      const kv::memory::Row row = view_.value_row(head_, tile + key);
      for (std::size_t d = 0; d < layout_.value_dim; ++d) {
        put_half(row, d, half_of(target, key / 2, d, parts_.value_columns, key % 2));
      }
    }
    return {target, 4 * parts_.value_columns};
  }

  void put_half(kv::memory::Row row, std::size_t i, std::byte* to) const {
    alignas(64) float value[kLanes] = {};
    alignas(64) std::uint16_t halves[kLanes];
    const std::size_t bytes = kv::memory::element_bytes(layout_.element);
    kv::memory::decode_row(layout_.element, {row.data + row.offset(i) * bytes}, 1, value);
    store_bf16(halves, load(value));
    __builtin_memcpy(to, halves, 2);
  }

  const kv::memory::SequenceView& view_;
  const kv::memory::PageLayout& layout_;
  std::uint32_t head_;
  std::uint64_t begin_;
  std::uint64_t end_;
  const AttentionScratch& parts_;
  bool whole_tiles_;  // 16 keys from a multiple of 16 never lie in two blocks
  bool key_columns_;
  bool value_pairs_;
  bool values_of_columns_;
  std::size_t page_bytes_;
  std::size_t first_keys_;  // in a page
  std::size_t first_values_;
};

}  // namespace pagoda::kernels::PAGODA_ISA
