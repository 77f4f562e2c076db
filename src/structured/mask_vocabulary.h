// MaskVocabulary is a model's vocabulary as masks need it: the bytes of each token in a trie, made
// once at load and shared by all requests. Immutable.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/token_id.h"
#include "structured/string_slice.h"
#include "structured/token_characters.h"
#include "structured/vocabulary_trie.h"

namespace pagoda::structured {

class MaskVocabulary {
 public:
  // `bytes` [token]: what a token adds to the text, or control_bytes() (text_nodes.h); empty for
  // tokens that no grammar allows. `end_tokens` end a generation and are allowed where a text may
  // end. The model has `vocabulary` logits, at least as many as there are bytes.
  static std::shared_ptr<const MaskVocabulary> build(std::vector<std::string> bytes,
                                                     std::span<const TokenId> end_tokens,
                                                     std::size_t vocabulary);

  std::size_t size() const { return vocabulary_; }
  std::size_t words() const { return mask_words(vocabulary_); }
  std::string_view bytes_of(TokenId token) const {
    return token.value() < bytes_.size() ? std::string_view(bytes_[token.value()])
                                         : std::string_view();
  }
  std::span<const std::string> bytes() const { return bytes_; }  // [token]
  bool is_end(TokenId token) const;
  std::span<const TokenId> end_tokens() const { return end_tokens_; }
  const VocabularyTrie& trie() const { return trie_; }
  const TokenCharacters& characters() const { return characters_; }
  // The slice of strings in state kBody or kEscape; nullptr for other states.
  const StringSlice* slice(std::uint8_t state) const;

 private:
  MaskVocabulary() = default;

  std::size_t vocabulary_ = 0;
  std::vector<std::string> bytes_;
  std::vector<TokenId> end_tokens_;  // ascending
  VocabularyTrie trie_;
  TokenCharacters characters_;
  std::vector<StringSlice> slices_;  // kBody, kEscape
};

}  // namespace pagoda::structured
