#include "inspect/token_report.h"

#include <fmt/format.h>
#include <unistd.h>

#include <charconv>
#include <iterator>
#include <nlohmann/json.hpp>
#include <vector>

#include "base/token_id.h"
#include "gguf/printable.h"
#include "inspect/conversation_input.h"
#include "terminal/json_text.h"
#include "text/chat_template.h"
#include "text/prompt_tokens.h"

namespace pagoda::inspect {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kPieceBytesMax = 400;

// Reads numbers with blanks, commas or brackets between them, as reports have them in both forms.
Result<std::vector<TokenId>> parse_ids(std::string_view text) {
  std::vector<TokenId> ids;
  constexpr std::string_view kBetween = " \t\r\n,[]";
  while (true) {
    const std::size_t begin = text.find_first_not_of(kBetween);
    if (begin == std::string_view::npos) return ids;
    text.remove_prefix(begin);
    const std::string_view word = text.substr(0, text.find_first_of(kBetween));
    std::uint32_t id = 0;
    const char* const end = word.data() + word.size();
    const auto parsed = std::from_chars(word.data(), end, id);
    if (parsed.ec != std::errc{} || parsed.ptr != end) {
      return Error{ErrorCode::kInvalidArgument,
                   fmt::format("'{}' is not a token id", gguf::printable(word, 60))};
    }
    ids.emplace_back(id);
    text.remove_prefix(word.size());
  }
}

std::string to_json_line(const Json& json) { return terminal::json_text(json, -1) + "\n"; }

// `origins` is empty, or has one for each id.
std::string show_ids(const text::Tokenizer& tokenizer, const std::vector<TokenId>& ids,
                     const TokenReportOptions& options,
                     const std::vector<text::Origin>& origins = {}) {
  const auto piece = [&](TokenId id) {
    return gguf::printable(tokenizer.bytes_of(id), kPieceBytesMax);
  };
  if (options.json) {
    Json json = {{"count", ids.size()}, {"ids", Json::array()}};
    for (const TokenId id : ids) json["ids"].push_back(id.value());
    if (options.pieces) json["pieces"] = Json::array();
    for (const TokenId id : ids) {
      if (options.pieces) json["pieces"].push_back(piece(id));
    }
    if (!origins.empty()) json["sources"] = Json::array();
    for (const text::Origin& origin : origins) {
      json["sources"].push_back(text::source_name(origin.source));
    }
    return to_json_line(json);
  }
  std::string shown;
  for (std::size_t i = 0; i < ids.size(); ++i) {
    if (!options.pieces) {
      fmt::format_to(std::back_inserter(shown), "{}{}", shown.empty() ? "" : " ", ids[i].value());
      continue;
    }
    const std::string source =
        origins.empty() ? "" : fmt::format("  {:<9}", text::source_name(origins[i].source));
    fmt::format_to(std::back_inserter(shown), "{:>8}{}  '{}'\n", ids[i].value(), source,
                   piece(ids[i]));
  }
  return options.pieces ? shown : shown + "\n";
}

Result<std::string> show_text(const text::Tokenizer& tokenizer, std::string_view input,
                              const TokenReportOptions& options) {
  ASSIGN_OR_RETURN(const std::vector<TokenId> ids, parse_ids(input));
  if (options.pieces) {
    for (const TokenId id : ids) {
      if (!tokenizer.contains(id)) return tokenizer.decode({&id, 1}, true).error();
    }
    return show_ids(tokenizer, ids, options);
  }
  ASSIGN_OR_RETURN(std::string text, tokenizer.decode(ids, options.special));
  if (options.json) return to_json_line({{"text", text}});
  // Exactly the text, for files and pipes; a terminal's prompt wants a line of its own.
  if (isatty(STDOUT_FILENO) != 0 && !text.ends_with('\n')) text += '\n';
  return text;
}

Result<std::string> show_chat(const text::Tokenizer& tokenizer, const gguf::Metadata& metadata,
                              std::string_view input, const TokenReportOptions& options) {
  ASSIGN_OR_RETURN(const text::Conversation conversation, parse_conversation(input));
  ASSIGN_OR_RETURN(const text::ChatTemplate chat,
                   options.chat_template.empty()
                       ? text::ChatTemplate::load(metadata, tokenizer)
                       : text::ChatTemplate::load_file(options.chat_template, tokenizer));
  ASSIGN_OR_RETURN(const text::OriginText prompt, chat.render(conversation));
  const text::PromptTokens tokens = text::tokenise_prompt(prompt, tokenizer);
  return show_ids(tokenizer, tokens.ids, options, tokens.origins);
}

}  // namespace

Result<std::string> token_report(const text::Tokenizer& tokenizer, const gguf::Metadata& metadata,
                                 std::string_view input, const TokenReportOptions& options) {
  if (options.detokenize) return show_text(tokenizer, input, options);
  if (options.chat) return show_chat(tokenizer, metadata, input, options);
  const text::EncodeOptions how = {.special = options.special, .add_bos_eos = options.bos};
  return show_ids(tokenizer, tokenizer.encode(input, how), options);
}

}  // namespace pagoda::inspect
