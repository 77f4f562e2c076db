// Unigram encoding: of all ways to cut a text into tokens, the one with the best sum of scores.
// Characters the vocabulary lacks become byte tokens or, a run at a time, the unknown token.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/result.h"
#include "text/fragment_encoder.h"
#include "text/pretokenizer.h"
#include "text/vocabulary.h"

namespace pagoda::text {

class UnigramEncoder final : public FragmentEncoder {
 public:
  // `vocabulary` must outlive the encoder.
  static Result<std::unique_ptr<FragmentEncoder>> load(const Vocabulary& vocabulary,
                                                       const PretokenizerFamily& family);

  void encode(std::string_view fragment, bool after_break, EncodeWorkspace& workspace,
              std::size_t tokens_max, std::vector<TokenId>& tokens) const override;

 private:
  UnigramEncoder(const Vocabulary& vocabulary, Pretokenizer pretokenizer);

  void insert(std::string_view text, std::uint32_t token);
  void encode_word(std::string_view word, std::vector<TokenId>& tokens) const;
  void append_unknown(std::string_view bytes, std::vector<TokenId>& tokens) const;

  static constexpr std::uint32_t kNone = UINT32_MAX;

  const Vocabulary& vocabulary_;
  Pretokenizer pretokenizer_;
  // A trie: children by node << 8 | byte; the token of each node, or kNone.
  std::unordered_map<std::uint64_t, std::uint32_t> children_;
  std::vector<std::uint32_t> token_of_node_ = {kNone};
  double unknown_score_ = 0;
  bool has_byte_tokens_ = false;
};

}  // namespace pagoda::text
