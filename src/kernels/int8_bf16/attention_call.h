// One call of attention: the queries of several tokens over one split, 32 of them at a time.
#pragma once

#include "kernels/int8_bf16/attention_pages.h"

namespace pagoda::kernels::PAGODA_ISA {

inline constexpr std::size_t kTileRows = 16;
inline constexpr float kNothing = -__builtin_inff();

// Memory is asked for tiles in the order they are used in: keys, values, the keys that are next.
// Four tiles are 8 KB of heads of 64: what a thread can wait for at once.
inline constexpr std::size_t kFetchAhead = 4;

template <class T>
constexpr T least(T a, T b) {
  return a < b ? a : b;
}
template <class T>
constexpr T most(T a, T b) {
  return a > b ? a : b;
}

// One call: the queries of several tokens over one split.
struct SplitCall {
  const Attention& attention;
  const AttentionRows& rows;
  std::uint32_t kv_head;
  std::uint32_t group;
  std::uint64_t split;
  const AttentionScratch& parts;
  std::size_t key_lines;    // of 64 bytes, in a tile of keys
  std::size_t value_lines;  // in a tile of values; 0: the call is for scores alone
  KvTiles sides;
  KvTile next_keys[kFetchAhead];  // the first of what is attended to next
  std::size_t next_tiles;

  // Keys of the split that a token sees, counted from the split's first: [begin, end).
  std::size_t begin(std::uint32_t token) const {
    return within(first_visible_key(attention, rows.first_position + token));
  }
  std::size_t end(std::uint32_t token) const {
    return within(visible_keys_end(attention, rows.first_position + token));
  }

 private:
  std::size_t within(std::uint64_t key) const {
    const std::uint64_t first = split * kInt8Bf16SplitKeys;
    return key <= first ? 0 : least<std::uint64_t>(key - first, kInt8Bf16SplitKeys);
  }
};

// Up to 32 of its queries, numbered token by token, head by head, and the keys any of them sees.
struct QueryBlock {
  QueryBlock(const SplitCall& of, std::uint32_t first, std::uint32_t count)
      : call(of),
        first_query(first),
        queries(count),
        first_tile(of.begin(first / of.group) / kKeyTile),
        last_tile(round_up(of.end((first + count - 1) / of.group), kKeyTile) / kKeyTile) {}

  // Queries of the first and the second tile register.
  std::uint8_t rows(int left) const {
    const std::size_t before = static_cast<std::size_t>(left) * kTileRows;
    return static_cast<std::uint8_t>(least<std::size_t>(queries - before, kTileRows));
  }
  std::uint32_t token(std::uint32_t query) const { return (first_query + query) / call.group; }
  // Whether every query sees all these keys.
  bool all_visible() const {
    return call.begin(token(queries - 1)) <= first_tile * kKeyTile &&
           last_tile * kKeyTile <= call.end(token(0));
  }

  const SplitCall& call;
  std::uint32_t first_query;
  std::uint32_t queries;
  std::size_t first_tile;  // of keys, within the split: [first_tile, last_tile)
  std::size_t last_tile;
};

// Asks memory for a tile where it stands; copies are there already.
inline void fetch_keys(const QueryBlock& tile, KvTile keys) {
  fetch_lines(keys.data, tile.call.key_lines, keys.stride);
}
inline void fetch_values(const QueryBlock& tile, std::size_t index) {
  if (index >= tile.last_tile) return;
  fetch_lines(tile.call.sides.values[index].data, tile.call.value_lines, kLine);
}
// While tile `index` of keys is used, and while tile `index` of values is. The first queries fetch
// for all.
inline void fetch_after_keys(const QueryBlock& tile, std::size_t index) {
  if (tile.first_query != 0) return;
  const std::size_t ahead = index + kFetchAhead;
  if (ahead < tile.last_tile) {
    fetch_keys(tile, tile.call.sides.keys[ahead]);
  } else {
    fetch_values(tile, ahead - tile.last_tile + tile.first_tile);
  }
}
inline void fetch_after_values(const QueryBlock& tile, std::size_t index) {
  if (tile.first_query != 0) return;
  const std::size_t ahead = index + kFetchAhead;
  if (ahead < tile.last_tile) {
    fetch_values(tile, ahead);
  } else if (ahead - tile.last_tile < tile.call.next_tiles) {
    fetch_keys(tile, tile.call.next_keys[ahead - tile.last_tile]);
  }
}

// Calls use(query, its floats, dimensions) for all queries of the tile.
template <class Use>
inline void for_each_query(const QueryBlock& tile, Use use) {
  const SplitCall& call = tile.call;
  const std::size_t key_dim = call.rows.view.layer.layout.key_dim;
  std::uint32_t head = tile.first_query % call.group;
  const float* token = call.rows.q + (std::size_t{tile.token(0)} * call.attention.heads +
                                      std::size_t{call.kv_head} * call.group) *
                                         key_dim;
  for (std::size_t query = 0; query < tile.queries; ++query) {
    use(query, token + head * key_dim, key_dim);
    if (++head < call.group) continue;
    head = 0;
    token += call.attention.heads * key_dim;
  }
}

}  // namespace pagoda::kernels::PAGODA_ISA
