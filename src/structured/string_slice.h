// StringSlice says what each token of a vocabulary is inside a JSON string without a pattern: part
// of the string as a whole, or the string's end and some bytes behind it. So the mask inside a
// string is a copy, and only the few texts that follow a quote are tried by the grammar.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "structured/program.h"
#include "structured/vocabulary_trie.h"

namespace pagoda::structured {

// A mask has one bit a token, the lowest bit of the first word for token 0.
using MaskWord = std::uint64_t;
inline constexpr std::size_t mask_words(std::size_t tokens) { return (tokens + 63) / 64; }
inline void set_mask_bit(std::span<MaskWord> mask, std::uint32_t token) {
  mask[token / 64] |= MaskWord{1} << (token % 64);
}
inline bool has_mask_bit(std::span<const MaskWord> mask, std::uint32_t token) {
  return (mask[token / 64] >> (token % 64) & 1) != 0;
}

class StringSlice {
 public:
  // `state` is that of the string's automaton in which a token begins.
  StringSlice(const VocabularyTrie& tokens, std::size_t vocabulary, std::uint8_t state);

  // Adds the tokens that stay within the string, if there is room for their code points.
  void add_inner(std::uint32_t room, std::span<MaskWord> mask) const;

  // The different texts behind the closing quote; the number is for add_exits.
  const VocabularyTrie& suffixes() const { return suffixes_; }
  // Tokens that end with the closing quote have this number.
  static constexpr std::uint32_t kNoSuffix = 0;
  // Adds the tokens that close the string and go on with this suffix, if the code points before the
  // quote are as many as the counter wants.
  void add_exits(std::uint32_t suffix, CountBounds counter, std::span<MaskWord> mask) const;

 private:
  struct CountedToken {
    std::uint32_t code_points;  // that begin within the token
    std::uint32_t token;
  };
  struct Exit;

  void keep_inner(std::vector<CountedToken> inner, std::size_t vocabulary);
  void keep_exits(std::vector<Exit> exits);

  static constexpr std::uint32_t kRoomMasks = 24;

  std::vector<std::vector<MaskWord>> inner_;  // [room < kRoomMasks]: tokens that fit
  std::vector<CountedToken> long_inner_;      // the others, by code points
  std::vector<MaskWord> all_inner_;
  std::uint32_t inner_code_points_max_ = 0;
  VocabularyTrie suffixes_;
  std::vector<std::uint32_t> exit_begins_;  // [suffix + 1], into exits_
  std::vector<CountedToken> exits_;         // of each suffix by code points
};

}  // namespace pagoda::structured
