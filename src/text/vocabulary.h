// The tokens of a model's file: texts, types, scores, special ids and flags. The file is read and
// checked once; the rest of this folder never sees it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/token_id.h"
#include "gguf/metadata.h"
#include "text/text_table.h"
#include "text/token_type.h"

namespace pagoda::text {

enum class TokenizerFamily : std::uint8_t {
  kBytePair,       // "gpt2": merges over bytes, texts in the printable byte alphabet
  kBytePairPlain,  // "gemma4", "bpe": merges over characters, spaces as U+2581, <0xXX> for the rest
  kSentencePiece,  // "llama": best score first, spaces as U+2581, <0xXX> for the rest
  kUnigram,        // "unigram": the best sum of scores, spaces as U+2581
};

// The character that stands for a space in texts of the plain and sentence-piece families.
inline constexpr std::string_view kSpaceMark = "\xE2\x96\x81";

struct Vocabulary {
  TokenizerFamily family = TokenizerFamily::kBytePair;
  std::string pretokenizer;  // empty when the file names none

  TextTable texts;  // as the file writes them
  TextTable bytes;  // as a reader sees them
  std::vector<TokenType> types;
  std::vector<float> scores;                            // sentence-piece and unigram only
  std::vector<double> exact_scores;                     // unigram only: as the file has them
  std::array<std::optional<TokenId>, 256> byte_tokens;  // the token of each single byte

  std::optional<TokenId> bos;
  std::optional<TokenId> eos;
  std::optional<TokenId> unknown;  // of type kUnknown, if there is one
  // Absent when the file leaves it to the family.
  std::optional<bool> add_bos;
  std::optional<bool> add_eos;
  bool add_space_prefix = false;
  // The prefix is for the beginning of a text alone, not for what follows special tokens.
  bool space_prefix_at_start_only = false;
  // Text that begins with a space gets no prefix.
  bool space_prefix_unless_space = false;
  // Special tokens that strip the white space before them (Phi-4) or after them (Phi-3, Phi-4);
  // empty when none does.
  std::vector<bool> strips_before;
  std::vector<bool> strips_after;

  std::vector<std::string> warnings;

  std::size_t size() const { return types.size(); }
  TokenType type(TokenId id) const { return types[id.value()]; }
  // Returns whether a space mark is put before a fragment that begins a text or follows a special
  // token.
  bool prefixes_space(std::string_view fragment) const {
    if (!add_space_prefix) return false;
    return !space_prefix_unless_space ||
           !(fragment.starts_with(' ') || fragment.starts_with(kSpaceMark));
  }
  // Returns whether text may become this token by merging. Control tokens are excluded, because
  // text that a user typed must not turn into them. User-defined tokens are cut out before; where
  // texts have space marks, those made of spaces are still reached by merging.
  bool mergeable(TokenId id) const {
    const TokenType type = types[id.value()];
    return type == TokenType::kNormal || type == TokenType::kUnused ||
           (type == TokenType::kUserDefined && family != TokenizerFamily::kBytePair);
  }
};

Result<Vocabulary> load_vocabulary(const gguf::Metadata& metadata);

// Returns the special id named by `key`: nothing when the key is absent, or, with a warning, when
// the id is outside the vocabulary.
Result<std::optional<TokenId>> special_id(const gguf::Metadata& metadata, std::string_view key,
                                          Vocabulary& vocabulary);

}  // namespace pagoda::text
