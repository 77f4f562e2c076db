// Encodes text without special tokens; each tokenizer family implements this interface.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/token_id.h"
#include "text/merge_list.h"
#include "text/pretokenizer.h"
#include "text/word_cache.h"

namespace pagoda::text {

// Buffers for encoding, kept between texts so that words allocate nothing. A workspace belongs to
// one encoder, because the word cache holds its tokens.
struct EncodeWorkspace {
  WordCache words;
  MergeList merges;
  SplitWorkspace split;
  std::vector<std::uint32_t> ends;
  std::string marked;
  // For sentence-piece: the bytes of the left part, for each unused token that a merge led to.
  std::unordered_map<std::uint32_t, std::uint32_t> unused_left_bytes;

  // Frees memory beyond the usual size, after a very long text.
  void release_excess() {
    constexpr std::size_t kKeptElements = std::size_t{1} << 16;
    merges.release_over(kKeptElements);
    if (ends.capacity() > kKeptElements) ends = {};
    if (split.ends_before.capacity() > kKeptElements) split.ends_before = {};
    if (std::exchange(split.bytes_longest, 0) > kKeptElements) split.match.reset();
    if (marked.capacity() > kKeptElements) marked = {};
  }
};

// `encode_word(word)` appends to `tokens`; it is called only for words that the cache lacks.
template <class EncodeWord>
void encode_cached(std::string_view word, WordCache& words, std::vector<TokenId>& tokens,
                   const EncodeWord& encode_word) {
  if (word.empty()) return;
  if (word.size() > WordCache::kWordBytesMax) {
    encode_word(word);
    return;
  }
  const WordCache::Key key = WordCache::key_of(word);
  if (const auto known = words.find(key)) {
    for (const TokenId token : *known) tokens.push_back(token);
    return;
  }
  const std::size_t before = tokens.size();
  encode_word(word);
  words.insert(key, std::span(tokens).subspan(before));
}

class FragmentEncoder {
 public:
  // Longer fragments are cut at this length: offsets in a text are 32-bit numbers, and a space may
  // take three bytes.
  static constexpr std::size_t kFragmentBytesMax = std::size_t{1} << 30;

  virtual ~FragmentEncoder() = default;
  // `after_break` means that the fragment is the first of its text or follows a special token.
  // Encoding stops after the word with which `tokens` exceeds `tokens_max`.
  virtual void encode(std::string_view fragment, bool after_break, EncodeWorkspace& workspace,
                      std::size_t tokens_max, std::vector<TokenId>& tokens) const = 0;
};

}  // namespace pagoda::text
