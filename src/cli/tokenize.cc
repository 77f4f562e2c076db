// pagoda tokenize: text to token ids and back, with a model's own vocabulary.
#include <fmt/format.h>
#include <unistd.h>

#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <iterator>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "app/loaded_model.h"
#include "base/result.h"
#include "base/token_id.h"
#include "cli/chat_input.h"
#include "cli/commands.h"
#include "cli/model_flags.h"
#include "cli/options.h"
#include "gguf/file.h"
#include "gguf/printable.h"
#include "terminal/json_text.h"
#include "text/chat_template.h"
#include "text/prompt_tokens.h"
#include "text/tokenizer.h"

namespace pagoda::cli {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kTokenizeExamples = R"(Examples:
  pagoda tokenize model.gguf "Hello, world!"
  pagoda tokenize model.gguf --pieces "<|im_start|>user" --special
      one token a line: its id and what it stands for
  pagoda tokenize model.gguf --file book.txt --json
  echo -n "Hello" | pagoda tokenize model.gguf
  pagoda tokenize model.gguf --detokenize "19556 28 905 17"
  pagoda tokenize model.gguf -- "-5 degrees"
  pagoda tokenize model.gguf --chat --pieces '[{"role": "user", "content": "Hi"}]'
      a conversation through the model's chat template; each token with who wrote it
  pagoda tokenize -m model.gguf "Hello"
The first word is the model, unless -m names it; without both it is the default model.
A file that holds a vocabulary and no tensors will do.)";

constexpr std::size_t kPieceBytesMax = 400;

struct TokenizeOptions {
  std::string model = app::default_model_path();
  std::string text;
  std::string file;
  bool special = false;
  bool bos = false;
  bool pieces = false;
  bool detokenize = false;
  bool chat = false;
  std::string chat_template;
  bool json = false;
  Flag text_option{nullptr};
  Flag file_option{nullptr};
};

Result<std::string> read_all(std::istream& stream, const std::string& name) {
  std::string text((std::istreambuf_iterator<char>(stream)), {});
  if (stream.bad()) return Error{ErrorCode::kIo, fmt::format("cannot read {}", name)};
  return text;
}

Result<std::string> read_input(const TokenizeOptions& options) {
  const bool has_file = options.file_option.count() > 0;
  if (options.text_option.count() > 0) {
    // A file named by the environment gives way to a text that was typed.
    if (has_file && !options.file_option.is_from_environment()) {
      return invalid("--file cannot be combined with TEXT");
    }
    return options.text;
  }
  if (!has_file) return read_all(std::cin, "standard input");
  std::ifstream stream(options.file, std::ios::binary);
  // Opening a folder succeeds; reading from it does not.
  if (!stream || stream.peek() == std::ifstream::traits_type::eof()) {
    if (!stream.is_open() || stream.bad()) {
      return Error{ErrorCode::kIo, fmt::format("--file: cannot read '{}'", options.file)};
    }
    return std::string();
  }
  return read_all(stream, options.file);
}

// Numbers with blanks, commas or brackets between them: what this command prints, with and
// without --json.
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
      return invalid(fmt::format("'{}' is not a token id", gguf::printable(word, 60)));
    }
    ids.emplace_back(id);
    text.remove_prefix(word.size());
  }
}

std::string to_json_line(const Json& json) { return terminal::json_text(json, -1) + "\n"; }

// `origins` is empty, or has one for each id.
std::string show_ids(const text::Tokenizer& tokenizer, const std::vector<TokenId>& ids,
                     const TokenizeOptions& options,
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
                              const TokenizeOptions& options) {
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
                              std::string_view input, const TokenizeOptions& options) {
  ASSIGN_OR_RETURN(const text::Conversation conversation, parse_conversation(input));
  ASSIGN_OR_RETURN(const text::ChatTemplate chat,
                   options.chat_template.empty()
                       ? text::ChatTemplate::load(metadata, tokenizer)
                       : text::ChatTemplate::load_file(options.chat_template, tokenizer));
  ASSIGN_OR_RETURN(const text::OriginText prompt, chat.render(conversation));
  const text::PromptTokens tokens = text::tokenise_prompt(prompt, tokenizer);
  return show_ids(tokenizer, tokens.ids, options, tokens.origins);
}

Result<std::string> answer(const TokenizeOptions& options) {
  Result<gguf::File> opened = app::open_model_file(options.model);
  if (!opened.ok()) {
    const bool is_alone = options.text_option.count() == 0 && options.file_option.count() == 0;
    return Error{
        opened.error().code,
        opened.error().message +
            (is_alone ? "; a text stands behind its model: pagoda tokenize MODEL TEXT" : "")};
  }
  const gguf::File file = std::move(opened).value();
  ASSIGN_OR_RETURN(const std::unique_ptr<text::Tokenizer> tokenizer,
                   text::Tokenizer::load(file.metadata()));
  for (const std::string& warning : tokenizer->warnings()) print_warning(warning);
  ASSIGN_OR_RETURN(const std::string input, read_input(options));
  if (options.detokenize) return show_text(*tokenizer, input, options);
  if (options.chat) return show_chat(*tokenizer, file.metadata(), input, options);
  const text::EncodeOptions how = {.special = options.special, .add_bos_eos = options.bos};
  return show_ids(*tokenizer, tokenizer->encode(input, how), options);
}

}  // namespace

void add_tokenize_command(const CommandSpec& app, int& exit_status) {
  const CommandSpec command =
      app.add_subcommand("tokenize", "Text to token ids and back, with a model's vocabulary");
  command.footer(kTokenizeExamples);
  const auto options = std::make_shared<TokenizeOptions>();
  add_model_option(command, options->model);
  options->text_option = command.add_option(
      "TEXT", options->text, "the text; without it --file, without that standard input");
  options->file_option =
      command.add_option("--file", options->file, "read the text from this file").type_name("FILE");
  command.add_flag("--special", options->special,
                   "read the text of control tokens as those tokens; show them when detokenizing");
  command.add_flag("--bos", options->bos, "add BOS and EOS where the model's file asks for them");
  command.add_flag("--pieces", options->pieces, "one token a line: id and piece");
  command.add_flag("--detokenize", options->detokenize, "the input is ids; print their text");
  const Flag chat = command.add_flag(
      "--chat", options->chat,
      "the input is a conversation as JSON: messages, or an object as the chat API takes it");
  command
      .add_option("--chat-template", options->chat_template,
                  "use this template instead of the model's own")
      .type_name("FILE")
      .needs(chat);
  command.add_flag("--json", options->json, "one JSON value on stdout");
  command.callback([options, &exit_status] {
    const Result<std::string> shown = answer(*options);
    if (!shown.ok()) {
      print_error(shown.error().message);
      exit_status = shown.error().code == ErrorCode::kInvalidArgument ? 2 : 1;
      return;
    }
    std::fwrite(shown.value().data(), 1, shown.value().size(), stdout);
    exit_status = 0;
  });
}

}  // namespace pagoda::cli
