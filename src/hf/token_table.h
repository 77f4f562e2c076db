// The tokens of tokenizer.json: its model's vocabulary, scores and merges, and added tokens.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/result.h"
#include "hf/json_file.h"
#include "text/token_type.h"

namespace pagoda::hf {

enum class TokenModel : std::uint8_t { kBytePair, kUnigram };

struct TokenTable {
  TokenModel model = TokenModel::kBytePair;
  bool byte_fallback = false;
  bool ignore_merges = false;
  std::vector<std::string> texts;  // by id
  std::vector<text::TokenType> types;
  std::vector<double> scores;       // unigram only
  std::vector<std::string> merges;  // "left right", best first; byte pair only
  // Added tokens that take the white space before them, or after them.
  std::vector<std::int32_t> strips_before;
  std::vector<std::int32_t> strips_after;
  std::optional<std::uint32_t> unknown;
  // Added tokens that the embedding has no rows for, such as those of images in models of text
  // alone. They are no tokens of the table.
  std::vector<std::string> left_out;
  std::unordered_map<std::string_view, std::uint32_t> ids;  // by text

  std::optional<std::uint32_t> id_of(std::string_view text) const;
};

// `tokenizer` is the root of tokenizer.json, `tokens_max` the rows of the model's embedding. The
// table is not copied: `ids` views its texts.
Status read_token_table(const JsonFields& tokenizer, std::uint64_t tokens_max, TokenTable& table);

}  // namespace pagoda::hf
