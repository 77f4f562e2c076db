// The keys and values of one KV head in one split, as right-hand sides of products: where they
// stand in their pages if that will do, else as copies in the scratch. Floats are multiplied as
// bf16, integers as bytes.
//
//   a tile of keys     [dimensions of a column][16 keys][those dimensions]: two bf16 or four bytes
//   a tile of values   [keys of a group][dimension][those keys]: two bf16 or four bytes
#pragma once

#include "kernels/activations.h"
#include "kernels/int8_bf16/page_tiles.h"
#include "kernels/ops.h"

namespace pagoda::kernels::PAGODA_ISA {

inline constexpr std::size_t kCallQueries = 32;  // that share a load of keys: two tiles
inline constexpr std::size_t kStepDimensions = 32;
inline constexpr std::size_t kSplitTiles = kInt8Bf16SplitKeys / kKeyTile;

// Parts of memory one behind the other. Where there is no memory yet, they are counted alone.
class PartsInTurn {
 public:
  explicit PartsInTurn(std::byte* memory) : memory_(memory) {}

  template <typename T>
  T* take(std::size_t count) {
    T* const part = memory_ == nullptr ? nullptr : reinterpret_cast<T*>(memory_ + bytes_);
    bytes_ += count * sizeof(T);
    return part;
  }
  std::size_t bytes() const { return bytes_; }

 private:
  std::byte* memory_;
  std::size_t bytes_ = 0;
};

// The parts of one thread's scratch memory, or of none: then only `bytes` is asked.
struct AttentionScratch {
  AttentionScratch(std::size_t key_dim, std::size_t value_dim, std::byte* scratch)
      : AttentionScratch(key_dim, value_dim, PartsInTurn(scratch)) {}

  std::size_t steps;          // of 32 dimensions of a key
  std::size_t k_blocks;       // of 64 dimensions
  std::size_t value_columns;  // value_dim up to a multiple of 16
  std::uint16_t* queries;     // [32][steps * 32] bf16, or [32][k_blocks] integers (int_rows.h)
  float* scores;              // [32][256]; weights take their place
  float* sums;                // [32][value_columns], where partials have no such columns
  float* key_scales;          // [groups][256] of keys that are integers
  float* value_scales;        // [groups][256]
  float* query_scales;        // [32] of queries as integers
  std::int32_t* lows;         // [32][16] sums of low limbs
  std::int32_t* highs;        // [32][16] sums of high limbs
  std::byte* int_weights;     // [32][split / 16] weights of values that are integers (int_rows.h)
  std::byte* keys;            // [split / 16] tiles of keys
  std::byte* values;          // [split / 16] tiles of values
  std::size_t bytes;          // of all of them

  // [256] of two bytes at the beginning of the query's scores: the first cache holds no more than
  // those.
  std::uint16_t* weights(std::size_t query) const {
    return reinterpret_cast<std::uint16_t*>(scores + query * kInt8Bf16SplitKeys);
  }
  static constexpr std::size_t kWeightStride = kInt8Bf16SplitKeys * sizeof(float);
  static constexpr std::size_t kIntWeightStride = kInt8Bf16SplitKeys * 2;
  // Groups of a row of the element that has most.
  static constexpr std::size_t groups_max(std::size_t dimensions) {
    return kv::memory::scale_groups(kv::memory::Element::kInt4, dimensions);
  }
  std::size_t query_stride() const { return k_blocks * sizeof(Int8Limbs); }
  std::size_t key_tile_bytes() const { return steps * 1024; }
  std::size_t value_tile_bytes() const { return 8 * 4 * value_columns; }

 private:
  AttentionScratch(std::size_t key_dim, std::size_t value_dim, PartsInTurn parts)
      : steps(round_up(key_dim, kStepDimensions) / kStepDimensions),
        k_blocks(k_blocks_of(key_dim)),
        value_columns(round_up(value_dim, 16)),
        queries(parts.take<std::uint16_t>(kCallQueries * query_stride() / sizeof(std::uint16_t))),
        scores(parts.take<float>(kCallQueries * kInt8Bf16SplitKeys)),
        sums(parts.take<float>(kCallQueries * value_columns)),
        key_scales(parts.take<float>(groups_max(key_dim) * kInt8Bf16SplitKeys)),
        value_scales(parts.take<float>(groups_max(value_dim) * kInt8Bf16SplitKeys)),
        query_scales(parts.take<float>(kCallQueries)),
        lows(parts.take<std::int32_t>(kCallQueries * 16)),
        highs(parts.take<std::int32_t>(kCallQueries * 16)),
        int_weights(parts.take<std::byte>(kCallQueries * kIntWeightStride)),
        keys(parts.take<std::byte>(kSplitTiles * key_tile_bytes())),
        values(parts.take<std::byte>(kSplitTiles * value_tile_bytes())),
        bytes(parts.bytes()) {}
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
        value_groups_(whole_tiles_ && !layout_.values_in_keys &&
                      layout_.value_order == kv::memory::ValueOrder::kTokenGroups &&
                      layout_.value_dim % 16 == 0),
        values_of_columns_(key_columns_ && layout_.values_in_keys && layout_.value_dim % 16 == 0),
        keys_in_place_(key_columns_ && (layout_.elements.keys == Element::kBF16 ||
                                        (layout_.elements.keys == Element::kInt8 &&
                                         layout_.key_dim % kBlockK == 0))),
        page_bytes_(layout_.page_bytes()),
        first_key_(layout_.key_offset(view.layer.layer, head, 0)),
        key_token_bytes_(kv::memory::run_units(layout_.elements.keys) *
                         kv::memory::unit_bytes(layout_.elements.keys)),
        first_value_(layout_.value_offset(view.layer.layer, head, 0)),
        value_row_bytes_(layout_.value_row_bytes()) {}

  // The tiles of [begin, end), and scales of what is integers. Scores need no values.
  void fill(KvTiles& sides, bool with_values) const {
    const std::uint64_t first = begin_ / kKeyTile * kKeyTile;
    BlockSlot place = slot_of(first);
    for (std::uint64_t tile = first; tile < end_; tile += kKeyTile, next_tile(place)) {
      const std::size_t index = tile % kInt8Bf16SplitKeys / kKeyTile;
      const KvTile key_tile = keys(tile, place, parts_.keys + index * parts_.key_tile_bytes());
      sides.keys[index] = key_tile;
      if (is_integer(layout_.elements.keys)) fill_key_scales(tile, place, index);
      if (!with_values) continue;
      std::byte* const value_target = parts_.values + index * parts_.value_tile_bytes();
      sides.values[index] = values_of_columns_ ? values_of_keys(tile, key_tile, value_target)
                                               : values(tile, place, value_target);
      if (is_integer(layout_.elements.values)) fill_value_scales(tile, place, index);
    }
  }

  // Up to `most` tiles of the keys of a split before `end`, where they are read in place; how many.
  std::size_t find_keys(KeySplit split, std::uint64_t end, KvTile* tiles, std::size_t most) const {
    if (!keys_in_place_) return 0;
    std::size_t count = 0;
    std::uint64_t tile = split.split * kInt8Bf16SplitKeys;
    BlockSlot place = slot_of(tile);
    for (; count < most && tile < end; tile += kKeyTile, next_tile(place)) {
      tiles[count++] = {
          page(place) + layout_.key_offset(view_.layer.layer, split.kv_head, place.token),
          key_stride()};
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
  bool visible(std::uint64_t key) const { return begin_ <= key && key < end_; }
  bool all_visible(std::uint64_t tile) const { return begin_ <= tile && tile + kKeyTile <= end_; }
  // Bytes from column to column of keys.
  std::size_t key_stride() const { return key_token_bytes_ * layout_.block_tokens; }

  // Keys [tile, tile + 16). What is not visible may be anything: it stays in its own column of
  // scores.
  KvTile keys(std::uint64_t tile, BlockSlot place, std::byte* target) const {
    if (!key_columns_) return gather_keys(tile, target);
    const std::byte* const first = page(place) + first_key_ + place.token * key_token_bytes_;
    if (keys_in_place_) return {first, key_stride()};
    const std::byte* const scales =
        page(place) + layout_.key_scale_offset(view_.layer.layer, head_, place.token);
    const KvTile columns = {first, key_stride()};
    if (is_integer(layout_.elements.keys)) {
      copy_int_keys(layout_.elements.keys, columns, layout_.key_dim, target);
    } else {
      convert_keys(layout_.elements.keys, columns, layout_.key_dim, scales, target);
    }
    return {target, kLine};
  }

  // Values of keys [tile, tile + 16). Those that are not visible are 0 where they are floats;
  // integers are always numbers, and weigh nothing.
  KvTile values(std::uint64_t tile, BlockSlot place, std::byte* target) const {
    if (!value_groups_) return gather_values(tile, target);
    const Element element = layout_.elements.values;
    const std::size_t dimensions = layout_.value_dim;
    const std::byte* const first = page(place) + first_value_ + place.token * value_row_bytes_;
    if (element == Element::kInt8) return {first, 4 * dimensions};
    if (element == Element::kInt4) {
      unpack_int4_values(first, dimensions, target);
      return {target, 4 * dimensions};
    }
    if (element == Element::kBF16 && all_visible(tile)) return {first, 4 * dimensions};
    const std::byte* const scales =
        page(place) + layout_.value_scale_offset(view_.layer.layer, head_, place.token);
    convert_values(element, first, dimensions, scales, target);
    if (!all_visible(tile)) hide_values(tile, target);
    return {target, 4 * dimensions};
  }

  // The same out of a tile of keys.
  KvTile values_of_keys(std::uint64_t tile, KvTile keys, std::byte* target) const {
    const std::size_t dimensions = layout_.value_dim;
    if (is_integer(layout_.elements.keys)) {
      turn_int_keys(keys, dimensions, target);
      return {target, 4 * dimensions};
    }
    turn_keys(keys, dimensions, target);
    if (!all_visible(tile)) hide_values(tile, target);
    return {target, 4 * dimensions};
  }

  void fill_key_scales(std::uint64_t tile, BlockSlot place, std::size_t index) const {
    const std::size_t groups = scale_groups(layout_.elements.keys, layout_.key_dim);
    for (std::size_t group = 0; group < groups; ++group) {
      load_scales(tile, place, true, group,
                  parts_.key_scales + group * kInt8Bf16SplitKeys + index * kKeyTile);
    }
  }
  void fill_value_scales(std::uint64_t tile, BlockSlot place, std::size_t index) const {
    const std::size_t groups = scale_groups(layout_.elements.values, layout_.value_dim);
    for (std::size_t group = 0; group < groups; ++group) {
      float* const scales = parts_.value_scales + group * kInt8Bf16SplitKeys + index * kKeyTile;
      load_scales(tile, place, false, group, scales);
      // A weight of 0 must stay 0, also beside a latent that is not finite.
      for (std::size_t key = 0; key < kKeyTile; ++key) {
        if (!visible(tile + key) || scales[key] != scales[key]) scales[key] = 0;
      }
    }
  }

  // Scales of one group of [tile, tile + 16); what is not visible may be anything.
  void load_scales(std::uint64_t tile, BlockSlot place, bool of_keys, std::size_t group,
                   float* scales) const {
    if (whole_tiles_) {
      const std::size_t offset =
          of_keys ? layout_.key_scale_offset(view_.layer.layer, head_, place.token)
                  : layout_.value_scale_offset(view_.layer.layer, head_, place.token);
      const std::byte* const halves = page(place) + offset + group * layout_.scale_step();
      store(scales, load_fp16(reinterpret_cast<const std::uint16_t*>(halves)));
      return;
    }
    for (std::size_t key = 0; key < kKeyTile; ++key) {
      scales[key] = 0;
      if (!visible(tile + key)) continue;
      scales[key] = row_scale(
          of_keys ? view_.key_row(head_, tile + key) : view_.value_row(head_, tile + key), group);
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

  // Rows one by one, whatever their order and the size of blocks.
  KvTile gather_keys(std::uint64_t tile, std::byte* target) const {
    __builtin_memset(target, 0, parts_.key_tile_bytes());
    for (std::size_t key = 0; key < kKeyTile; ++key) {
      if (!visible(tile + key)) continue;
      place_key(layout_.elements.keys, view_.key_row(head_, tile + key), layout_.key_dim, key,
                target);
    }
    return {target, kLine};
  }
  KvTile gather_values(std::uint64_t tile, std::byte* target) const {
    __builtin_memset(target, 0, parts_.value_tile_bytes());
    for (std::size_t key = 0; key < kKeyTile; ++key) {
      if (!visible(tile + key)) continue;
      place_value(layout_.elements.values, view_.value_row(head_, tile + key), layout_.value_dim,
                  parts_.value_columns, key, target);
    }
    return {target, 4 * parts_.value_columns};
  }

  const kv::memory::SequenceView& view_;
  const kv::memory::PageLayout& layout_;
  std::uint32_t head_;
  std::uint64_t begin_;
  std::uint64_t end_;
  const AttentionScratch& parts_;
  bool whole_tiles_;  // 16 keys from a multiple of 16 never lie in two blocks
  bool key_columns_;
  bool value_groups_;
  bool values_of_columns_;
  bool keys_in_place_;
  std::size_t page_bytes_;
  // Offsets within a page, computed once: those of keys in columns and of values in groups are
  // linear in the first token of a tile.
  std::size_t first_key_;
  std::size_t key_token_bytes_;
  std::size_t first_value_;
  std::size_t value_row_bytes_;
};

}  // namespace pagoda::kernels::PAGODA_ISA
