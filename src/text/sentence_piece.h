// SentencePiece-style encoding: a text starts as characters, spaces as U+2581, and the pair whose
// text is the token with the highest score merges until none is left. Characters the vocabulary
// lacks become byte tokens; a token marked unused is undone into the two parts it came from.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "text/fragment_encoder.h"
#include "text/piece_index.h"
#include "text/vocabulary.h"

namespace pagoda::text {

class SentencePieceEncoder final : public FragmentEncoder {
 public:
  // `vocabulary` must outlive the encoder.
  explicit SentencePieceEncoder(const Vocabulary& vocabulary);

  void encode(std::string_view fragment, bool after_break, EncodeWorkspace& workspace,
              std::size_t tokens_max, std::vector<TokenId>& tokens) const override;

 private:
  void encode_word(std::string_view word, EncodeWorkspace& workspace,
                   std::vector<TokenId>& tokens) const;
  void append_tokens(std::string_view piece, const EncodeWorkspace& workspace,
                     std::vector<TokenId>& tokens) const;

  const Vocabulary& vocabulary_;
  PieceIndex index_;
  std::vector<std::uint32_t> ranks_;  // by token: 0 has the best score, equal scores share a rank
  bool tokens_span_words_ = false;
};

}  // namespace pagoda::text
