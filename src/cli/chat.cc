// pagoda chat: a conversation in the terminal, with a local model or a server.
#include <fmt/format.h>
#include <unistd.h>

#include <iostream>
#include <memory>

#include "app/chat_model.h"
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
#include "terminal/interrupt.h"

namespace pagoda::cli {
namespace {

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
  std::string system;
  std::string prompt;
  std::string revision;
  bool trusts_remote_code = false;
  app::ChatSampling sampling;
};

constexpr const char* kChatExamples =
    "Examples:\n"
    "  pagoda chat\n"
    "  pagoda chat --system 'Answer in one sentence.' --temp 0\n"
    "  pagoda chat --url http://127.0.0.1:8000\n"
    "  pagoda chat -p 'What is a pagoda?'       (one question, then the end)\n"
    "In the chat: /reset forgets the conversation, /exit or Ctrl-D ends it, Ctrl-C stops a "
    "reply.\n"
    "Replies go to stdout; the prompt and the line of figures after each reply go to stderr.";

void print_figures(const app::ChatReply& answer) {
  const double decoded =
      answer.output_tokens > 1 ? static_cast<double>(answer.output_tokens - 1) : 0;
  const double decode_s = answer.total_s - answer.first_token_s;
  fmt::print(stderr, "[TTFT {:.0f} ms, {:.1f} tok/s, {}; prompt {}, {} cached{}]\n",
             answer.first_token_s * 1e3, decode_s > 0 ? decoded / decode_s : 0.0,
             counted(answer.output_tokens, "token"), counted(answer.prompt_tokens, "token"),
             answer.cached_tokens,
             answer.finish_reason == "stop" ? "" : "; ended by " + answer.finish_reason);
}

class ChatSession {
 public:
  ChatSession(app::ChatModel& chat_model, const ChatOptions& options)
      : chat_model_(chat_model), options_(options) {
    reset();
  }

  void reset() {
    messages_ = text::ChatJson::array();
    if (!options_.system.empty()) {
      messages_.push_back({{"role", "system"}, {"content", options_.system}});
    }
  }

  // One question. The exchange is part of the conversation only when it went well.
  Status ask(const std::string& question) {
    messages_.push_back({{"role", "user"}, {"content", question}});
    const terminal::Interrupt interrupt;
    bool has_shown = false;
    const auto show = [&has_shown](std::string_view piece) {
      has_shown = true;
      std::fwrite(piece.data(), 1, piece.size(), stdout);
      std::fflush(stdout);
    };
    const auto answer = chat_model_.complete(messages_, options_.sampling, show,
                                             [&] { return interrupt.requested(); });
    if (answer.ok() || has_shown) fmt::print("\n");
    if (!answer.ok()) {
      messages_.erase(messages_.size() - 1);
      return answer.error();
    }
    messages_.push_back({{"role", "assistant"}, {"content", answer.value().text}});
    print_figures(answer.value());
    return ok_status();
  }

  // Lines of stdin until its end.
  void converse() {
    const bool terminal = isatty(STDIN_FILENO) != 0;
    if (terminal) {
      const std::string sampling = with_flags(chat_model_.sampling());
      fmt::print(stderr, "{}. /reset, /exit; Ctrl-C stops a reply.\n{}", chat_model_.name(),
                 sampling.empty() ? "" : fmt::format("Unless you say otherwise: {}.\n", sampling));
    }
    std::string line;
    for (;;) {
      if (terminal) fmt::print(stderr, "> ");
      if (!std::getline(std::cin, line) || line == "/exit") break;
      if (line.empty()) continue;
      if (line == "/reset") {
        reset();
        continue;
      }
      if (line.starts_with('/')) {
        print_warning(fmt::format("\"{}\" is no command: /reset and /exit are", line));
        continue;
      }
      const Status asked = ask(line);
      if (!asked.ok()) print_error(asked.error().message);
    }
  }

 private:
  app::ChatModel& chat_model_;
  const ChatOptions& options_;
  text::ChatJson messages_;
};

Result<int> chat(ChatOptions& options) {
  ASSIGN_OR_RETURN(options.local.model, app::with_revision(options.local.model, options.revision));
  ASSIGN_OR_RETURN(const std::unique_ptr<app::ChatModel> chat_model,
                   options.url.empty()
                       ? app::open_local_chat(options.local)
                       : app::open_remote_chat(options.url, options.served_model, options.access));
  ChatSession session(*chat_model, options);
  if (!options.prompt.empty()) {
    RETURN_IF_ERROR(session.ask(options.prompt));
  } else {
    session.converse();
  }
  return 0;
}

}  // namespace

void add_chat_command(const CommandSpec& app, int& exit_status) {
  const CommandSpec command = app.add_subcommand("chat", "Chat in the terminal");
  const auto options = std::make_shared<ChatOptions>();
  add_model_option(command, options->local.model);
  add_revision_option(command, options->revision);
  add_tokenizer_option(command, options->local.tokenizer);
  add_override_options(command, options->local.overrides);
  add_quantization_options(command, options->local.quantization);
  add_generation_options(command, options->local.generation);
  add_trust_option(command, options->trusts_remote_code);
  command.add_option("--url", options->url, "a server to chat with instead, http[s]://HOST:PORT");
  command.add_option("--served-model", options->served_model,
                     "model to ask the server for (default: the one it serves)");
  add_access_options(command, options->access, "key for the server");
  command.add_option("--system", options->system, "system message");
  command.add_option("-p,--prompt", options->prompt, "ask this once and end");
  command.add_option("--chat-template", options->local.chat_template,
                     "file with a chat template (default: the model's own)");
  command
      .add_option("--temp,--temperature", options->sampling.fields.temperature,
                  "0 takes the likeliest token; higher is more varied (default: the model's, else "
                  "0.7; with --url the server's)")
      .range(0.0, 100.0);
  command
      .add_option("--top-p", options->sampling.fields.top_p,
                  "sample from the likeliest tokens of this probability (default: the model's, "
                  "else 0.95; with --url the server's)")
      .range(1e-6, 1.0);
  command.add_option("--seed", options->sampling.seed, "sampling seed (default: a fresh one)");
  command
      .add_option("-n,--max-tokens", options->sampling.tokens_max,
                  "new tokens at most (default 1024)")
      .range(1u, 1u << 30);
  command.add_option("-t,--threads", options->local.threads, "threads (default: usable cores)")
      .range(1u, 1024u);
  command
      .add_option("-c,--max-model-len", options->local.max_model_len,
                  "context in tokens (default: the model's)")
      .range(std::uint64_t{1}, std::uint64_t{1} << 30);
  add_kv_eviction_option(command, options->local.kv_eviction);
  add_device_options(command, options->local.device);
  command.footer(kChatExamples);
  command.callback([options, &exit_status] {
    const Result<int> outcome = chat(*options);
    if (!outcome.ok()) print_error(outcome.error().message);
    exit_status = outcome.ok() ? outcome.value() : 1;
  });
}

}  // namespace pagoda::cli
