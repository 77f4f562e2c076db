// pagoda chat: a conversation in the terminal, with a local model or a server.
#include <fmt/format.h>
#include <unistd.h>

#include <iostream>
#include <memory>
#include <optional>

#include "app/chat_model.h"
#include "app/chat_session.h"
#include "app/loaded_model.h"
#include "app/model_name.h"
#include "base/thread_pool.h"
#include "cli/access_flags.h"
#include "cli/commands.h"
#include "cli/device_flags.h"
#include "cli/field_flags.h"
#include "cli/kv_flags.h"
#include "cli/model_flags.h"
#include "cli/options.h"
#include "cli/prompt_text.h"
#include "cli/speculation_flags.h"

namespace pagoda::cli {
namespace {

enum class Truncating { kAuto, kMiddle, kNone };

std::optional<chat::DropOrder> order_of(Truncating truncation) {
  switch (truncation) {
    case Truncating::kAuto:
      return chat::DropOrder::kOldest;
    case Truncating::kMiddle:
      return chat::DropOrder::kMiddle;
    case Truncating::kNone:
      break;
  }
  return std::nullopt;
}

struct ChatOptions {
  app::LocalChatOptions local = {.model = app::default_model_path(),
                                 .tokenizer = {},
                                 .overrides = {},
                                 .quantization = {},
                                 .chat_template = {},
                                 .device = {},
                                 .generation = {}};
  std::string url;
  std::string served_model;
  net::ServerAccess access;
  app::ChatSessionOptions session;
  Truncating truncation = Truncating::kAuto;
  std::string prompt;
  std::string revision;
  bool trusts_remote_code = false;
};

constexpr const char* kChatExamples =
    "Examples:\n"
    "  pagoda chat\n"
    "  pagoda chat --system 'Answer in one sentence.' --temp 0\n"
    "  pagoda chat --url http://127.0.0.1:8000\n"
    "  pagoda chat -p 'What is a pagoda?'       (one question, then the end)\n"
    "In the chat: /reset forgets the conversation, /bye, /exit or Ctrl-D ends it, /help lists "
    "these, Ctrl-C stops a reply.\n"
    "Replies go to stdout; the prompt and the line of figures after each reply go to stderr.";

constexpr const char* kChatCommands =
    "/reset       forget the conversation\n"
    "/bye, /exit  end, as Ctrl-D does\n"
    "/help        this list\n"
    "Ctrl-C       stop the reply\n";

// A command of the chat that does not end it.
void obey(const std::string& line, app::ChatSession& session) {
  if (line == "/reset") {
    session.reset();
  } else if (line == "/help") {
    fmt::print(stderr, "{}", kChatCommands);
  } else {
    print_warning(fmt::format("\"{}\" is no command; /help lists them", line));
  }
}

// Lines of stdin until its end.
void converse(const app::ChatModel& chat_model, app::ChatSession& session) {
  const bool terminal = isatty(STDIN_FILENO) != 0;
  if (terminal) {
    const std::string sampling = with_flags(chat_model.sampling());
    fmt::print(stderr, "{}. /help, /reset, /bye; Ctrl-C stops a reply.\n{}", chat_model.name(),
               sampling.empty() ? "" : fmt::format("Unless you say otherwise: {}.\n", sampling));
  }
  std::string line;
  for (;;) {
    if (terminal) fmt::print(stderr, "> ");
    if (!std::getline(std::cin, line) || line == "/bye" || line == "/exit") break;
    if (line.empty()) continue;
    if (line.starts_with('/')) {
      obey(line, session);
      continue;
    }
    const Status asked = session.ask(line);
    if (!asked.ok()) print_error(asked.error().message);
  }
}

Result<int> chat(ChatOptions& options) {
  ASSIGN_OR_RETURN(options.local.model, app::with_revision(options.local.model, options.revision));
  ASSIGN_OR_RETURN(const std::unique_ptr<app::ChatModel> chat_model,
                   options.url.empty()
                       ? app::open_local_chat(options.local)
                       : app::open_remote_chat(options.url, options.served_model, options.access));
  options.session.truncation = order_of(options.truncation);
  app::ChatSession session(*chat_model, options.session);
  if (!options.prompt.empty()) {
    RETURN_IF_ERROR(session.ask(prompt_text(options.prompt)));
  } else {
    converse(*chat_model, session);
  }
  return 0;
}

void add_sampling_options(const CommandSpec& command, app::ChatSampling& sampling) {
  command
      .add_option("--temp,--temperature", sampling.fields.temperature,
                  "0 takes the likeliest token; higher is more varied (default: the model's, else "
                  "0.7; with --url the server's)")
      .range(0.0, 100.0);
  command
      .add_option("--top-p", sampling.fields.top_p,
                  "sample from the likeliest tokens of this probability (default: the model's, "
                  "else 0.95; with --url the server's)")
      .range(1e-6, 1.0);
  add_token_choice_options(command, sampling.fields);
  command.add_option("--seed", sampling.seed, "sampling seed (default: a fresh one)");
  command.add_option("-n,--max-tokens", sampling.tokens_max, "new tokens at most (default 1024)")
      .token_count(1, 1u << 30);
}

// Adds the options that decide what a chat does when its context is full or nearly full.
void add_context_options(const CommandSpec& command, ChatOptions& options) {
  command.add_choice(
      "--truncation", options.truncation,
      {{"auto", Truncating::kAuto}, {"middle", Truncating::kMiddle}, {"none", Truncating::kNone}},
      "when the context is full: auto leaves the oldest turns out, middle those "
      "behind the first, none ends in an error (default auto)");
  command
      .add_option("--compact-at", options.session.compact_at,
                  "share of the context from which on the model summarises older turns, e.g. 0.75 "
                  "(default 0: never)")
      .range(0.0, 1.0);
  command
      .add_option("--keep-turns", options.session.keep_turns,
                  "newest turns that a summary leaves as they are (default 2)")
      .range(std::size_t{1}, std::size_t{1} << 20);
}

}  // namespace

void add_chat_command(const CommandSpec& app, int& exit_status) {
  const CommandSpec command = app.add_subcommand("chat", "Chat in the terminal");
  const auto options = std::make_shared<ChatOptions>();
  command.group("Model");
  add_model_option(command, options->local.model);
  add_revision_option(command, options->revision);
  add_tokenizer_option(command, options->local.tokenizer);
  add_override_options(command, options->local.overrides);
  add_quantization_options(command, options->local.quantization);
  add_generation_options(command, options->local.generation);
  add_trust_option(command, options->trusts_remote_code);
  command.add_option("--chat-template", options->local.chat_template,
                     "file with a chat template (default: the model's own)");
  command.group("Server");
  command.add_option("--url", options->url, "a server to chat with instead, http[s]://HOST:PORT");
  command.add_option("--served-model", options->served_model,
                     "model to ask the server for; with --url, --model means the same (default: "
                     "the one it serves)");
  const Flag model = command.flag("--model");
  add_access_options(command, options->access, "key for the server");
  command.group("Conversation");
  command.add_option("--system", options->session.system, "system message");
  command.add_option("-p,--prompt", options->prompt,
                     "ask this once and end; \"-\" reads it from stdin");
  add_context_options(command, *options);
  command.group("Output");
  add_sampling_options(command, options->session.sampling);
  command.group("Device");
  command.add_option("-t,--threads", options->local.threads, "threads (default: usable cores)")
      .range(1u, 1024u);
  add_device_options(command, options->local.device);
  command.group("KV cache");
  command
      .add_option("-c,--max-model-len", options->local.max_model_len,
                  "context in tokens (default, and 0: the model's)")
      .token_count(0, std::uint64_t{1} << 30);
  add_kv_cache_dtype_options(command, options->local.kv_cache_dtype);
  add_kv_eviction_option(command, options->local.kv_eviction);
  add_kv_policy_option(command, options->local.kv_policy);
  command.group("Draft tokens");
  add_speculation_options(command, options->local.speculation);
  command.used_most({"--model", "--url", "--system", "--prompt", "--max-tokens", "--temp",
                     "--top-p", "--max-model-len", "--threads", "--device"});
  command.footer(kChatExamples);
  command.callback([options, model, &exit_status] {
    // PAGODA_MODEL is where the program finds a model of its own.
    const bool names_served = !options->url.empty() && options->served_model.empty() &&
                              model.count() > 0 && !model.is_from_environment();
    if (names_served) options->served_model = options->local.model;
    const Result<int> outcome = chat(*options);
    if (!outcome.ok()) print_error(outcome.error().message);
    exit_status = outcome.ok() ? outcome.value() : 1;
  });
}

}  // namespace pagoda::cli
