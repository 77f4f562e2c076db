#include "structured/mask_vocabulary.h"

#include <algorithm>
#include <utility>

#include "structured/string_automaton.h"
#include "structured/text_nodes.h"

namespace pagoda::structured {
namespace {

// No text has such bytes; control_bytes() have them.
bool is_never_text(std::string_view bytes) {
  return std::any_of(bytes.begin(), bytes.end(),
                     [](char byte) { return static_cast<unsigned char>(byte) > 0xF4; });
}

}  // namespace

std::shared_ptr<const MaskVocabulary> MaskVocabulary::build(std::vector<std::string> bytes,
                                                            std::span<const TokenId> end_tokens,
                                                            std::size_t vocabulary) {
  std::shared_ptr<MaskVocabulary> made(new MaskVocabulary);
  made->vocabulary_ = vocabulary;
  made->bytes_ = std::move(bytes);
  made->bytes_.resize(std::min(made->bytes_.size(), vocabulary));
  for (const TokenId token : end_tokens) {
    if (token.value() >= vocabulary) continue;
    made->end_tokens_.push_back(token);
    if (token.value() < made->bytes_.size()) made->bytes_[token.value()].clear();
  }
  for (std::uint32_t id = 0; id < made->bytes_.size(); ++id) {
    std::string& text = made->bytes_[id];
    if (is_never_text(text) && text != control_bytes(TokenId(id))) text.clear();
  }
  std::sort(made->end_tokens_.begin(), made->end_tokens_.end());
  std::vector<TrieEntry> entries;
  entries.reserve(made->bytes_.size());
  for (std::uint32_t id = 0; id < made->bytes_.size(); ++id) {
    if (!made->bytes_[id].empty()) entries.push_back({made->bytes_[id], id});
  }
  made->trie_ = VocabularyTrie(std::move(entries));
  made->characters_ = TokenCharacters(made->trie_, vocabulary);
  made->slices_.emplace_back(made->trie_, vocabulary, kBody);
  made->slices_.emplace_back(made->trie_, vocabulary, kEscape);
  return made;
}

bool MaskVocabulary::is_end(TokenId token) const {
  return std::binary_search(end_tokens_.begin(), end_tokens_.end(), token);
}

const StringSlice* MaskVocabulary::slice(std::uint8_t state) const {
  if (state == kBody) return &slices_[0];
  return state == kEscape ? &slices_[1] : nullptr;
}

}  // namespace pagoda::structured
