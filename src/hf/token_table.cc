#include "hf/token_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "gguf/printable.h"

namespace pagoda::hf {
namespace {

constexpr std::size_t kTokenBytesShown = 60;
// Ids beyond this would cost memory that no vocabulary needs.
constexpr std::uint64_t kTokensMax = std::uint64_t{1} << 24;

using text::TokenType;

class TableReader {
 public:
  TableReader(const JsonFields& tokenizer, const JsonFields& model, std::uint64_t tokens_max,
              TokenTable& table)
      : tokenizer_(tokenizer), model_(model), tokens_max_(tokens_max), table_(table) {}

  Status read() {
    RETURN_IF_ERROR(read_kind());
    RETURN_IF_ERROR(table_.model == TokenModel::kBytePair ? read_pairs() : read_pieces());
    RETURN_IF_ERROR(read_unknown());
    mark_bytes();
    RETURN_IF_ERROR(read_added());
    fill_holes();
    for (std::uint32_t id = 0; id < table_.texts.size(); ++id) {
      table_.ids.emplace(table_.texts[id], id);
    }
    return read_merges();
  }

 private:
  Error refused(std::string_view field, std::string_view why) const {
    return model_.refused(field, why);
  }

  Status read_kind() {
    ASSIGN_OR_RETURN(std::string type, model_.text_or("type", ""));
    // Files of old versions have no type.
    if (type.empty()) type = model_.has("merges") ? "BPE" : "Unigram";
    if (type != "BPE" && type != "Unigram") {
      return Error{ErrorCode::kUnsupported,
                   fmt::format("{}type is '{}': this version reads BPE and Unigram tokenizers",
                               model_.place(), gguf::printable(type, 40))};
    }
    table_.model = type == "BPE" ? TokenModel::kBytePair : TokenModel::kUnigram;
    ASSIGN_OR_RETURN(table_.byte_fallback, model_.flag_or("byte_fallback", false));
    ASSIGN_OR_RETURN(table_.ignore_merges, model_.flag_or("ignore_merges", false));
    for (const char* const field : {"continuing_subword_prefix", "end_of_word_suffix"}) {
      ASSIGN_OR_RETURN(const std::string mark, model_.text_or(field, ""));
      if (!mark.empty()) return refused(field, "which is not supported");
    }
    ASSIGN_OR_RETURN(const double dropout, model_.number_or("dropout", 0));
    if (dropout != 0) return refused("dropout", "which is not supported");
    return ok_status();
  }

  Status set(std::uint64_t id, std::string_view text, TokenType type) {
    if (id >= kTokensMax) {
      return Error{ErrorCode::kOutOfRange,
                   fmt::format("{}token '{}' has id {}, the limit is {}", tokenizer_.place(),
                               gguf::printable(text, kTokenBytesShown), id, kTokensMax)};
    }
    if (id >= table_.texts.size()) {
      table_.texts.resize(id + 1);
      table_.types.resize(id + 1, TokenType::kUnused);
      is_set_.resize(id + 1);
    }
    if (is_set_[id] && table_.texts[id] != text) {
      return Error{ErrorCode::kCorrupt,
                   fmt::format("{}id {} is both '{}' and '{}'", tokenizer_.place(), id,
                               gguf::printable(table_.texts[id], kTokenBytesShown),
                               gguf::printable(text, kTokenBytesShown))};
    }
    table_.texts[id] = text;
    table_.types[id] = type;
    is_set_[id] = true;
    return ok_status();
  }

  Status read_pairs() {
    const JsonValue* const vocabulary = model_.find("vocab");
    if (vocabulary == nullptr || !vocabulary->is_object()) return model_.missing("vocab");
    for (const auto& [text, id] : vocabulary->items()) {
      if (!id.is_number_unsigned()) {
        return Error{ErrorCode::kCorrupt,
                     fmt::format("{}vocab: token '{}' has id {}", model_.place(),
                                 gguf::printable(text, kTokenBytesShown), shown(id))};
      }
      RETURN_IF_ERROR(set(id.get<std::uint64_t>(), text, TokenType::kNormal));
    }
    return ok_status();
  }

  Status read_pieces() {
    const JsonValue* const vocabulary = model_.find("vocab");
    if (vocabulary == nullptr || !vocabulary->is_array()) return model_.missing("vocab");
    for (const JsonValue& piece : *vocabulary) {
      if (!piece.is_array() || piece.size() != 2 || !piece[0].is_string() ||
          !piece[1].is_number()) {
        return Error{ErrorCode::kCorrupt,
                     fmt::format("{}vocab[{}] is {}, expected a text and a score", model_.place(),
                                 table_.texts.size(), shown(piece))};
      }
      RETURN_IF_ERROR(
          set(table_.texts.size(), piece[0].get_ref<const std::string&>(), TokenType::kNormal));
      table_.scores.push_back(piece[1].get<double>());
    }
    return ok_status();
  }

  Status read_unknown() {
    if (table_.model == TokenModel::kUnigram) {
      if (!model_.has("unk_id")) return ok_status();
      ASSIGN_OR_RETURN(const std::uint64_t id, model_.count("unk_id"));
      if (id >= table_.texts.size()) return refused("unk_id", "which is no token");
      table_.unknown = static_cast<std::uint32_t>(id);
    } else {
      ASSIGN_OR_RETURN(const std::string text, model_.text_or("unk_token", ""));
      const auto found = std::find(table_.texts.begin(), table_.texts.end(), text);
      if (text.empty() || found == table_.texts.end()) return ok_status();
      table_.unknown = static_cast<std::uint32_t>(found - table_.texts.begin());
    }
    table_.types[*table_.unknown] = TokenType::kUnknown;
    return ok_status();
  }

  void mark_bytes() {
    if (!table_.byte_fallback) return;
    for (std::size_t id = 0; id < table_.texts.size(); ++id) {
      const std::string& text = table_.texts[id];
      const bool is_byte = text.size() == 6 && text.starts_with("<0x") && text.back() == '>';
      if (is_byte) table_.types[id] = TokenType::kByte;
    }
  }

  Status read_added() {
    const JsonValue* const added = tokenizer_.find("added_tokens");
    if (added == nullptr) return ok_status();
    if (!added->is_array()) return tokenizer_.wrong_type("added_tokens", "a list");
    for (const JsonValue& token : *added) {
      ASSIGN_OR_RETURN(const JsonFields fields,
                       JsonFields::of(token, tokenizer_.place() + "added_tokens: "));
      RETURN_IF_ERROR(read_added_token(fields));
    }
    return ok_status();
  }

  Status read_added_token(const JsonFields& fields) {
    ASSIGN_OR_RETURN(const std::uint64_t id, fields.count("id"));
    ASSIGN_OR_RETURN(const std::string text, fields.text_or("content", ""));
    ASSIGN_OR_RETURN(const bool special, fields.flag_or("special", false));
    ASSIGN_OR_RETURN(const bool single_word, fields.flag_or("single_word", false));
    ASSIGN_OR_RETURN(const bool strips_before, fields.flag_or("lstrip", false));
    ASSIGN_OR_RETURN(const bool strips_after, fields.flag_or("rstrip", false));
    if (single_word) {
      return Error{ErrorCode::kUnsupported,
                   fmt::format("{}token '{}' has single_word, which is not supported",
                               fields.place(), gguf::printable(text, kTokenBytesShown))};
    }
    const bool is_known = id < is_set_.size() && is_set_[id];
    if (id >= tokens_max_ && id < kTokensMax && !is_known) {
      table_.left_out.push_back(text);
      return ok_status();
    }
    if (table_.unknown == id) return set(id, text, TokenType::kUnknown);
    RETURN_IF_ERROR(set(id, text, special ? TokenType::kControl : TokenType::kUserDefined));
    if (strips_before) table_.strips_before.push_back(static_cast<std::int32_t>(id));
    if (strips_after) table_.strips_after.push_back(static_cast<std::int32_t>(id));
    return ok_status();
  }

  // Ids that no token has get a text that nothing becomes.
  void fill_holes() {
    for (std::size_t id = 0; id < table_.texts.size(); ++id) {
      if (!is_set_[id]) table_.texts[id] = fmt::format("[PAD{}]", id);
    }
    if (table_.model == TokenModel::kUnigram) table_.scores.resize(table_.texts.size());
  }

  // Merges are "left right" or ["left", "right"].
  Status read_merges() {
    if (table_.model != TokenModel::kBytePair) return ok_status();
    const JsonValue* const merges = model_.find("merges");
    if (merges == nullptr || !merges->is_array()) return model_.missing("merges");
    table_.merges.reserve(merges->size());
    for (const JsonValue& merge : *merges) {
      if (merge.is_string()) {
        table_.merges.push_back(merge.get<std::string>());
        continue;
      }
      const bool is_pair = merge.is_array() && merge.size() == 2 && merge[0].is_string() &&
                           merge[1].is_string() && !merge[0].get_ref<const std::string&>().empty();
      // The description has a space between the two.
      if (!is_pair || merge[0].get_ref<const std::string&>().find(' ', 1) != std::string::npos) {
        return Error{ErrorCode::kCorrupt,
                     fmt::format("{}merges[{}] is {}, expected two pieces without a space",
                                 model_.place(), table_.merges.size(), shown(merge))};
      }
      table_.merges.push_back(merge[0].get<std::string>() + " " + merge[1].get<std::string>());
    }
    return ok_status();
  }

  const JsonFields& tokenizer_;
  const JsonFields& model_;
  std::uint64_t tokens_max_;
  TokenTable& table_;
  std::vector<bool> is_set_;
};

}  // namespace

std::optional<std::uint32_t> TokenTable::id_of(std::string_view text) const {
  const auto found = ids.find(text);
  return found == ids.end() ? std::nullopt : std::optional(found->second);
}

Status read_token_table(const JsonFields& tokenizer, std::uint64_t tokens_max, TokenTable& table) {
  ASSIGN_OR_RETURN(const std::optional<JsonFields> model, tokenizer.object("model"));
  if (!model) return tokenizer.missing("model");
  return TableReader(tokenizer, *model, tokens_max, table).read();
}

}  // namespace pagoda::hf
