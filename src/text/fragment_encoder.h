// Text without special tokens to ids: what the families of tokenizers do differently.
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

// What encoding needs while it runs, kept between texts so that words allocate nothing. One
// encoder's only: the word cache holds its tokens.
struct EncodeWorkspace {
  WordCache words;
  MergeList merges;
  SplitWorkspace split;
  std::vector<std::uint32_t> ends;
  std::string marked;
  // Sentence-piece: for each unused token a merge led to, the bytes of its left part.
  std::unordered_map<std::uint32_t, std::uint32_t> unused_left_bytes;

  // Gives back what one very long text made grow.
  void release_excess() {
    constexpr std::size_t kKeptElements = std::size_t{1} << 16;
    merges.release_over(kKeptElements);
    if (ends.capacity() > kKeptElements) ends = {};
    if (split.ends_before.capacity() > kKeptElements) split.ends_before = {};
    if (std::exchange(split.bytes_longest, 0) > kKeptElements) split.match.reset();
    if (marked.capacity() > kKeptElements) marked = {};
  }
};

// `encode_word(word)` appends to `tokens`; it is asked only for words the cache does not hold.
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
  // Longer fragments are cut here: places in a text are 32-bit numbers, and a space may take
  // three bytes.
  static constexpr std::size_t kFragmentBytesMax = std::size_t{1} << 30;

  virtual ~FragmentEncoder() = default;
  // `after_break`: the fragment is the first of its text or follows a special token. Words after
  // the one with which `tokens` has more than `tokens_max` are left out.
  virtual void encode(std::string_view fragment, bool after_break, EncodeWorkspace& workspace,
                      std::size_t tokens_max, std::vector<TokenId>& tokens) const = 0;
};

}  // namespace pagoda::text
