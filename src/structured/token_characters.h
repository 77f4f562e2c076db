// TokenCharacters says which characters the tokens of a vocabulary have, so that those which are
// made of the characters of one set are found without a walk of the vocabulary's trie.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "structured/program.h"
#include "structured/string_slice.h"
#include "structured/vocabulary_trie.h"

namespace pagoda::structured {

// The kind of a byte, as one of 64 bits: a kind stands for one byte or for several.
std::uint64_t byte_kind(std::uint8_t byte);

// The characters that an instruction takes: some of ASCII, and all beyond it or none.
struct CharacterSet {
  ByteSet ascii;
  bool has_wide = false;
  bool has_separators = false;
};

// Whether a byte goes on within the set, by the state of wide_characters() that it leads to, which
// is kWideDead where it does not.
std::uint8_t next_within(const CharacterSet& set, std::uint8_t state, std::uint8_t byte);

// Nodes of a trie below one of them, or all.
struct Subtree {
  std::size_t first = 0;
  std::size_t end = 0;
  std::size_t depth = 0;  // of that one
};

class TokenCharacters {
 public:
  TokenCharacters() = default;
  TokenCharacters(const VocabularyTrie& trie, std::size_t vocabulary);

  // The kinds of all bytes at a node of the trie and below it. One more stands for a
  // token with a broken character, or with U+2028 or U+2029.
  std::uint64_t kinds_below(std::size_t node) const { return below_[node]; }
  // Those of which the set has all bytes.
  static std::uint64_t whole_kinds(const CharacterSet& set);
  // Adds the tokens of a subtree that go on behind the bytes that lead there, `prefix`, with at
  // most `room` characters, all of which are in the set; the last one may be cut off. `bytes_of`
  // [number] are the bytes of tokens.
  void add_within(const CharacterSet& set, const Subtree& below, std::string_view prefix,
                  std::uint32_t room, std::span<const std::string> bytes_of,
                  std::span<MaskWord> mask) const;
  // Removes tokens in which more characters begin.
  void keep_short(std::uint32_t characters, std::span<MaskWord> mask) const;

 private:
  struct LongToken {
    std::uint32_t characters = 0;
    std::uint32_t number = 0;
  };

  static constexpr std::uint32_t kLengthMasks = 24;

  std::vector<std::uint64_t> below_;  // [node]
  // Tokens as in the trie:
  std::vector<std::uint32_t> nodes_;  // where they end
  std::vector<std::uint32_t> numbers_;
  std::vector<std::uint64_t> kinds_;  // byte_kind() of all bytes and two more (token_characters.cc)
  std::vector<std::uint16_t> characters_;       // that begin in them
  std::vector<std::vector<MaskWord>> at_most_;  // [characters < kLengthMasks]
  std::vector<LongToken> long_;                 // the others, with the longest first
};

}  // namespace pagoda::structured
