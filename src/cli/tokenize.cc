// pagoda tokenize: text to token ids and back, with a model's own vocabulary.
#include <fmt/format.h>

#include <cstdio>
#include <fstream>
#include <iostream>
#include <iterator>
#include <memory>
#include <string>

#include "app/loaded_model.h"
#include "base/result.h"
#include "cli/commands.h"
#include "cli/model_flags.h"
#include "cli/options.h"
#include "gguf/file.h"
#include "inspect/token_report.h"
#include "text/tokenizer.h"

namespace pagoda::cli {
namespace {

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

struct TokenizeOptions {
  std::string model = app::default_model_path();
  std::string text;
  std::string file;
  inspect::TokenReportOptions report;
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
  return inspect::token_report(*tokenizer, file.metadata(), input, options.report);
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
  command.add_flag("--special", options->report.special,
                   "read the text of control tokens as those tokens; show them when detokenizing");
  command.add_flag("--bos", options->report.bos,
                   "add BOS and EOS where the model's file asks for them");
  command.add_flag("--pieces", options->report.pieces, "one token a line: id and piece");
  command.add_flag("--detokenize", options->report.detokenize,
                   "the input is ids; print their text");
  const Flag chat = command.add_flag(
      "--chat", options->report.chat,
      "the input is a conversation as JSON: messages, or an object as the chat API takes it");
  command
      .add_option("--chat-template", options->report.chat_template,
                  "use this template instead of the model's own")
      .type_name("FILE")
      .needs(chat);
  command.add_flag("--json", options->report.json, "one JSON value on stdout");
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
