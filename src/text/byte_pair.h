// Byte-pair encoding: a piece starts as bytes (or characters) and the pair with the lowest rank
// merges until none is left.
//
// Merges run over symbols: a token's id, or a number past the vocabulary for a text that merges go
// through but that is no token. Such a symbol, if it stays, becomes the tokens of its bytes.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "gguf/metadata.h"
#include "text/fragment_encoder.h"
#include "text/merge_table.h"
#include "text/piece_index.h"
#include "text/pretokenizer.h"
#include "text/text_table.h"
#include "text/vocabulary.h"

namespace pagoda::text {

class BytePairEncoder final : public FragmentEncoder {
 public:
  // `vocabulary` must outlive the encoder.
  static Result<std::unique_ptr<BytePairEncoder>> load(const gguf::Metadata& metadata,
                                                       const Vocabulary& vocabulary,
                                                       const PretokenizerFamily& family);

  void encode(std::string_view fragment, bool after_break, EncodeWorkspace& workspace,
              std::size_t tokens_max, std::vector<TokenId>& tokens) const override;

 private:
  BytePairEncoder(const Vocabulary& vocabulary, Pretokenizer pretokenizer,
                  const PretokenizerFamily& family);

  void read_pieces();
  Status read_merges(const gguf::Metadata& metadata);
  void derive_merges();
  // Returns the symbol of `piece`, and makes it if there is none.
  std::uint32_t symbol_of(std::string_view piece);
  bool plain() const { return vocabulary_.family == TokenizerFamily::kBytePairPlain; }
  bool is_token(std::uint32_t symbol) const { return symbol < vocabulary_.size(); }

  void encode_piece(std::string_view piece, EncodeWorkspace& workspace,
                    std::vector<TokenId>& tokens) const;
  void encode_word(std::string_view word, MergeList& list, std::vector<TokenId>& tokens) const;

  const Vocabulary& vocabulary_;
  Pretokenizer pretokenizer_;
  bool whole_words_first_;
  bool whole_newlines_first_;
  bool merges_span_words_ = false;
  TextTable pieces_;  // by symbol; empty for tokens that text never becomes
  PieceIndex index_{pieces_};
  std::array<std::uint32_t, 256> byte_symbols_{};  // PieceIndex::kNone where there is none
  MergeTable merges_;
};

}  // namespace pagoda::text
