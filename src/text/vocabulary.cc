#include "text/vocabulary.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>

#include "gguf/printable.h"
#include "text/byte_alphabet.h"
#include "text/piece_index.h"

namespace pagoda::text {
namespace {

constexpr std::string_view kTokens = "tokenizer.ggml.tokens";
constexpr std::string_view kTypes = "tokenizer.ggml.token_type";
constexpr std::string_view kScores = "tokenizer.ggml.scores";
constexpr std::string_view kSpacePrefix = "tokenizer.ggml.add_space_prefix";
constexpr std::size_t kShownBytesMax = 60;  // the bytes of a text that a message shows

Result<TokenizerFamily> read_family(const gguf::Metadata& metadata) {
  ASSIGN_OR_RETURN(const std::string_view model, metadata.text("tokenizer.ggml.model"));
  if (model == "gpt2") return TokenizerFamily::kBytePair;
  if (model == "gemma4" || model == "bpe") return TokenizerFamily::kBytePairPlain;
  if (model == "llama") return TokenizerFamily::kSentencePiece;
  if (model == "unigram") return TokenizerFamily::kUnigram;
  return Error{ErrorCode::kUnsupported,
               fmt::format("{}: tokenizer.ggml.model is '{}'; this build reads gpt2, llama and "
                           "gemma4 tokenizers",
                           metadata.source(), gguf::printable(model, kShownBytesMax))};
}

Error length_error(const gguf::Metadata& metadata, std::string_view key, std::size_t found,
                   std::size_t tokens) {
  return {ErrorCode::kCorrupt, fmt::format("{}: {} has {} entries for {} tokens", metadata.source(),
                                           key, found, tokens)};
}

Status read_types(const gguf::Metadata& metadata, std::size_t tokens, Vocabulary& vocabulary) {
  vocabulary.types.assign(tokens, TokenType::kNormal);
  if (!metadata.contains(kTypes)) return ok_status();
  ASSIGN_OR_RETURN(const std::vector<std::int64_t> types, metadata.integers(kTypes));
  if (types.size() != tokens) return length_error(metadata, kTypes, types.size(), tokens);
  for (std::size_t i = 0; i < tokens; ++i) {
    if (types[i] < 0 || types[i] > 6) {
      return Error{ErrorCode::kCorrupt, fmt::format("{}: {}[{}] is {}; types are 0 to 6",
                                                    metadata.source(), kTypes, i, types[i])};
    }
    if (types[i] != 0) vocabulary.types[i] = static_cast<TokenType>(types[i]);
  }
  return ok_status();
}

Status read_scores(const gguf::Metadata& metadata, std::size_t tokens, Vocabulary& vocabulary) {
  if (vocabulary.family != TokenizerFamily::kSentencePiece &&
      vocabulary.family != TokenizerFamily::kUnigram) {
    return ok_status();
  }
  if (!metadata.contains(kScores)) {
    vocabulary.scores.assign(tokens, 0.0F);
    vocabulary.exact_scores.assign(tokens, 0.0);
    vocabulary.warnings.push_back(
        fmt::format("{}: no {}: every merge counts the same, which is wrong for most models",
                    metadata.source(), kScores));
    return ok_status();
  }
  ASSIGN_OR_RETURN(vocabulary.scores, metadata.floats(kScores));
  const std::vector<float>& scores = vocabulary.scores;
  if (scores.size() != tokens) return length_error(metadata, kScores, scores.size(), tokens);
  for (std::size_t i = 0; i < tokens; ++i) {
    if (std::isnan(scores[i])) {
      return Error{ErrorCode::kCorrupt,
                   fmt::format("{}: {}[{}] is not a number", metadata.source(), kScores, i)};
    }
  }
  if (vocabulary.family == TokenizerFamily::kUnigram) {
    const gguf::Array& array = std::get<gguf::Array>(metadata.find(kScores)->data);
    for (const gguf::MetadataValue& score : gguf::elements(array, array.count)) {
      vocabulary.exact_scores.push_back(std::get<double>(score.data));
    }
  }
  return ok_status();
}

// Returns the byte that "<0xAB>" stands for.
std::optional<std::uint8_t> parse_byte_token(std::string_view text) {
  if (text.size() != 6 || !text.starts_with("<0x") || text.back() != '>') return std::nullopt;
  std::uint8_t byte = 0;
  const char* const end = text.data() + 5;
  const auto [stop, error] = std::from_chars(text.data() + 3, end, byte, 16);
  if (error != std::errc{} || stop != end) return std::nullopt;
  return byte;
}

void append_without_marks(std::string_view text, std::string& bytes) {
  while (true) {
    const std::size_t mark = text.find(kSpaceMark);
    bytes.append(text.substr(0, mark));
    if (mark == std::string_view::npos) return;
    bytes.push_back(' ');
    text.remove_prefix(mark + kSpaceMark.size());
  }
}

// Appends a token's text as a reader sees it. The texts of special tokens use neither the byte
// alphabet nor space marks.
void append_bytes(const Vocabulary& vocabulary, TokenType type, std::string_view text,
                  std::string& bytes) {
  if (type == TokenType::kControl || type == TokenType::kUnknown ||
      type == TokenType::kUserDefined) {
    const bool marked =
        type == TokenType::kUserDefined && vocabulary.family != TokenizerFamily::kBytePair;
    marked ? append_without_marks(text, bytes) : static_cast<void>(bytes.append(text));
  } else if (vocabulary.family == TokenizerFamily::kBytePair) {
    if (!append_alphabet_bytes(text, bytes)) bytes.append(text);
  } else {
    append_without_marks(text, bytes);
  }
}

void note_byte_token(Vocabulary& vocabulary, TokenId id, std::uint8_t byte) {
  std::optional<TokenId>& slot = vocabulary.byte_tokens[byte];
  if (!slot.has_value()) slot = id;
}

void read_texts(const gguf::Metadata& metadata, const std::vector<std::string_view>& texts,
                Vocabulary& vocabulary) {
  vocabulary.texts.reserve(texts.size());
  vocabulary.bytes.reserve(texts.size());
  std::size_t empty = 0;
  std::string bytes;
  for (std::size_t i = 0; i < texts.size(); ++i) {
    const TokenId id(static_cast<std::uint32_t>(i));
    const TokenType type = vocabulary.types[i];
    vocabulary.texts.append(texts[i]);
    empty += texts[i].empty() ? 1 : 0;
    bytes.clear();
    const auto byte = parse_byte_token(texts[i]);
    if (type == TokenType::kByte && byte.has_value()) {
      bytes.push_back(static_cast<char>(*byte));
      note_byte_token(vocabulary, id, *byte);
    } else {
      append_bytes(vocabulary, type, texts[i], bytes);
    }
    vocabulary.bytes.append(bytes);
  }
  if (empty > 0) {
    vocabulary.warnings.push_back(
        fmt::format("{}: {} tokens have no text", metadata.source(), empty));
  }
}

// Records the single-byte tokens of byte-level vocabularies; in other families they replace missing
// <0xXX>.
void note_single_bytes(Vocabulary& vocabulary) {
  for (std::size_t i = 0; i < vocabulary.size(); ++i) {
    const TokenId id(static_cast<std::uint32_t>(i));
    const std::string_view bytes = vocabulary.bytes[i];
    if (bytes.size() == 1 && vocabulary.mergeable(id)) {
      note_byte_token(vocabulary, id, static_cast<std::uint8_t>(bytes[0]));
    }
  }
}

// Vocabularies often lack bytes that no text has; a missing byte that a keyboard types is worth a
// warning.
void warn_of_gaps(const gguf::Metadata& metadata, Vocabulary& vocabulary) {
  std::size_t missing = vocabulary.byte_tokens['\n'].has_value() ? 0 : 1;
  for (unsigned char byte = 0x20; byte < 0x7F; ++byte) {
    missing += vocabulary.byte_tokens[byte].has_value() ? 0 : 1;
  }
  if (missing > 0) {
    vocabulary.warnings.push_back(
        fmt::format("{}: the vocabulary cannot write {} of the 96 ASCII characters; they {} in "
                    "prompts",
                    metadata.source(), missing,
                    vocabulary.unknown.has_value() ? "become the unknown token" : "are dropped"));
  }
  PieceIndex index(vocabulary.texts);
  std::size_t duplicates = 0;
  for (std::uint32_t i = 0; i < vocabulary.size(); ++i) {
    if (!vocabulary.texts[i].empty()) duplicates += index.insert(i) != i ? 1 : 0;
  }
  if (duplicates > 0) {
    vocabulary.warnings.push_back(
        fmt::format("{}: {} tokens have the text of an earlier one, which is used for prompts",
                    metadata.source(), duplicates));
  }
}

// Added tokens that the model's embedding has no rows for.
Status warn_of_left_out(const gguf::Metadata& metadata, Vocabulary& vocabulary) {
  constexpr std::string_view kLeftOut = "pagoda.tokenizer.left_out";
  if (!metadata.contains(kLeftOut)) return ok_status();
  ASSIGN_OR_RETURN(const std::vector<std::string_view> texts, metadata.texts(kLeftOut));
  if (texts.empty()) return ok_status();
  vocabulary.warnings.push_back(fmt::format(
      "{}: {} added tokens are beyond the {} of the model's embedding and are left out: '{}'{}",
      metadata.source(), texts.size(), vocabulary.size(),
      gguf::printable(texts.front(), kShownBytesMax), texts.size() > 1 ? " and others" : ""));
  return ok_status();
}

Result<std::optional<bool>> optional_flag(const gguf::Metadata& metadata, std::string_view key) {
  if (!metadata.contains(key)) return std::optional<bool>();
  ASSIGN_OR_RETURN(const bool flag, metadata.flag_or(key, false));
  return std::optional<bool>(flag);
}

Status read_special_ids(const gguf::Metadata& metadata, Vocabulary& vocabulary) {
  ASSIGN_OR_RETURN(vocabulary.bos, special_id(metadata, "tokenizer.ggml.bos_token_id", vocabulary));
  ASSIGN_OR_RETURN(vocabulary.eos, special_id(metadata, "tokenizer.ggml.eos_token_id", vocabulary));
  ASSIGN_OR_RETURN(vocabulary.unknown,
                   special_id(metadata, "tokenizer.ggml.unknown_token_id", vocabulary));
  if (vocabulary.family == TokenizerFamily::kSentencePiece) {
    const auto fall_back = [&](std::string_view key, std::optional<TokenId>& id, unsigned value) {
      if (!metadata.contains(key) && value < vocabulary.size()) id = TokenId(value);
    };
    fall_back("tokenizer.ggml.unknown_token_id", vocabulary.unknown, 0);
    fall_back("tokenizer.ggml.bos_token_id", vocabulary.bos, 1);
    fall_back("tokenizer.ggml.eos_token_id", vocabulary.eos, 2);
  }
  // Some files name a control token here, and text that a user typed must not turn into one.
  if (vocabulary.unknown && vocabulary.type(*vocabulary.unknown) != TokenType::kUnknown) {
    vocabulary.unknown.reset();
  }
  return ok_status();
}

// Phi-3's tags strip the white space after them; these do not.
bool keeps_space_after(std::string_view text) {
  return text == "<unk>" || text == "<s>" || text == "<|endoftext|>";
}

// Sets `strips` from a list of tokens.
Status read_strip_list(const gguf::Metadata& metadata, std::string_view key, std::size_t tokens,
                       std::vector<bool>& strips) {
  ASSIGN_OR_RETURN(const std::vector<std::int64_t> ids, metadata.integers(key));
  if (!ids.empty()) strips.resize(tokens);
  for (const std::int64_t id : ids) {
    if (id < 0 || static_cast<std::size_t>(id) >= tokens) {
      return Error{ErrorCode::kOutOfRange,
                   fmt::format("{}: {} names token {} of {}", metadata.source(), key, id, tokens)};
    }
    strips[static_cast<std::size_t>(id)] = true;
  }
  return ok_status();
}

// Lists of tokens that strip the white space beside them; a file without one is judged by its name.
Status read_strips(const gguf::Metadata& metadata, Vocabulary& vocabulary) {
  constexpr std::string_view kBefore = "pagoda.tokenizer.strips_before";
  constexpr std::string_view kAfter = "pagoda.tokenizer.strips_after";
  const std::size_t tokens = vocabulary.size();
  if (metadata.contains(kBefore)) {
    RETURN_IF_ERROR(read_strip_list(metadata, kBefore, tokens, vocabulary.strips_before));
  }
  if (metadata.contains(kAfter)) {
    return read_strip_list(metadata, kAfter, tokens, vocabulary.strips_after);
  }
  ASSIGN_OR_RETURN(const std::string_view name, metadata.text_or("general.name", ""));
  std::string lower(name);
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  if (lower.find("phi-3") == std::string::npos && lower.find("phi3") == std::string::npos) {
    return ok_status();
  }
  for (std::size_t i = 0; i < vocabulary.size(); ++i) {
    vocabulary.strips_after.push_back(!keeps_space_after(vocabulary.texts[i]));
  }
  return ok_status();
}

Status read_flags(const gguf::Metadata& metadata, Vocabulary& vocabulary) {
  ASSIGN_OR_RETURN(vocabulary.add_bos, optional_flag(metadata, "tokenizer.ggml.add_bos_token"));
  ASSIGN_OR_RETURN(vocabulary.add_eos, optional_flag(metadata, "tokenizer.ggml.add_eos_token"));
  if (vocabulary.family == TokenizerFamily::kSentencePiece) {
    ASSIGN_OR_RETURN(vocabulary.add_space_prefix, metadata.flag_or(kSpacePrefix, true));
  } else if (vocabulary.family != TokenizerFamily::kBytePair) {
    ASSIGN_OR_RETURN(vocabulary.add_space_prefix, metadata.flag_or(kSpacePrefix, false));
  }
  ASSIGN_OR_RETURN(vocabulary.space_prefix_at_start_only,
                   metadata.flag_or("pagoda.tokenizer.space_prefix_at_start_only", false));
  ASSIGN_OR_RETURN(vocabulary.space_prefix_unless_space,
                   metadata.flag_or("pagoda.tokenizer.space_prefix_unless_space", false));
  return read_strips(metadata, vocabulary);
}

}  // namespace

Result<std::optional<TokenId>> special_id(const gguf::Metadata& metadata, std::string_view key,
                                          Vocabulary& vocabulary) {
  if (!metadata.contains(key)) return std::optional<TokenId>();
  ASSIGN_OR_RETURN(const std::uint64_t id, metadata.unsigned_value(key));
  if (id >= vocabulary.size()) {
    vocabulary.warnings.push_back(fmt::format("{}: {} is {}, but there are {} tokens: ignored",
                                              metadata.source(), key, id, vocabulary.size()));
    return std::optional<TokenId>();
  }
  return std::optional<TokenId>(TokenId(static_cast<std::uint32_t>(id)));
}

Result<Vocabulary> load_vocabulary(const gguf::Metadata& metadata) {
  Vocabulary vocabulary;
  ASSIGN_OR_RETURN(vocabulary.family, read_family(metadata));
  ASSIGN_OR_RETURN(const std::string_view pretokenizer, metadata.text_or("tokenizer.ggml.pre", ""));
  vocabulary.pretokenizer = pretokenizer;
  ASSIGN_OR_RETURN(const std::vector<std::string_view> texts, metadata.texts(kTokens));
  if (texts.empty() || texts.size() > INT32_MAX) {
    return Error{ErrorCode::kCorrupt,
                 fmt::format("{}: {} has {} entries; 1 to {} are possible", metadata.source(),
                             kTokens, texts.size(), INT32_MAX)};
  }
  RETURN_IF_ERROR(read_types(metadata, texts.size(), vocabulary));
  RETURN_IF_ERROR(read_scores(metadata, texts.size(), vocabulary));
  read_texts(metadata, texts, vocabulary);
  note_single_bytes(vocabulary);
  RETURN_IF_ERROR(read_special_ids(metadata, vocabulary));
  RETURN_IF_ERROR(read_flags(metadata, vocabulary));
  RETURN_IF_ERROR(warn_of_left_out(metadata, vocabulary));
  warn_of_gaps(metadata, vocabulary);
  return vocabulary;
}

}  // namespace pagoda::text
