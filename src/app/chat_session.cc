#include "app/chat_session.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <utility>
#include <vector>

#include "terminal/interrupt.h"
#include "terminal/messages.h"

namespace pagoda::app {
namespace {

void print_figures(const ChatReply& answer) {
  const double decoded =
      answer.output_tokens > 1 ? static_cast<double>(answer.output_tokens - 1) : 0;
  const double decode_s = answer.total_s - answer.first_token_s;
  fmt::print(stderr, "[TTFT {:.0f} ms, {:.1f} tok/s, {}; prompt {}, {} cached{}]\n",
             answer.first_token_s * 1e3, decode_s > 0 ? decoded / decode_s : 0.0,
             terminal::counted(answer.output_tokens, "token"),
             terminal::counted(answer.prompt_tokens, "token"), answer.cached_tokens,
             answer.finish_reason == "stop" ? "" : "; ended by " + answer.finish_reason);
}

// What goes to stderr after the text begins on a line of its own, also where both go to one pipe.
void end_text() {
  fmt::print("\n");
  std::fflush(stdout);
}

}  // namespace

void ChatSession::reset() {
  messages_ = text::ChatJson::array();
  if (!options_.system.empty()) {
    messages_.push_back({{"role", "system"}, {"content", options_.system}});
  }
}

Status ChatSession::ask(const std::string& question) {
  const text::ChatJson before = messages_;
  messages_.push_back({{"role", "user"}, {"content", question}});
  const terminal::Interrupt interrupt;
  bool has_shown = false;
  const auto show = [&has_shown](std::string_view piece) {
    has_shown = true;
    std::fwrite(piece.data(), 1, piece.size(), stdout);
    std::fflush(stdout);
  };
  const Stopped stopped = [&interrupt] { return interrupt.requested(); };
  const auto complete = [&] {
    return chat_model_.complete(messages_, options_.sampling, show, stopped);
  };
  Result<ChatReply> answer = complete();
  const auto is_too_long = [&] {
    return !answer.ok() && answer.error().code == ErrorCode::kOutOfRange && !has_shown;
  };
  while (is_too_long() && drop_turns()) answer = complete();
  if (answer.ok() || has_shown) end_text();
  if (!answer.ok()) {
    messages_ = before;  // also what was left out in vain
    return answer.error();
  }
  messages_.push_back({{"role", "assistant"}, {"content", answer.value().text}});
  print_figures(answer.value());
  compact_if_full(answer.value(), stopped);
  return ok_status();
}

// A quarter of the text goes at a time, so that the turns that follow share a prefix for a while.
bool ChatSession::drop_turns() {
  if (!options_.truncation) return false;
  const std::vector<chat::MessageRange> ranges =
      chat::droppable_ranges(messages_, *options_.truncation);
  if (ranges.empty()) return false;
  const std::uint64_t enough = chat::text_bytes(messages_) / 4;
  std::size_t count = 0;
  for (std::uint64_t bytes = 0; count < ranges.size() && (count == 0 || bytes < enough); ++count) {
    for (std::size_t i = ranges[count].begin; i < ranges[count].end; ++i) {
      bytes += chat::text_bytes(messages_[i]);
    }
  }
  const std::vector<std::uint32_t> kept =
      chat::kept_messages(messages_, std::span(ranges).first(count));
  fmt::print(
      stderr, "[the context is full: {} left out{}]\n",
      terminal::counted(messages_.size() - kept.size(), "message"),
      *options_.truncation == chat::DropOrder::kMiddle ? " behind the first turn" : ", the oldest");
  messages_ = chat::pick_messages(messages_, kept);
  return true;
}

void ChatSession::compact_if_full(const ChatReply& answer, const Stopped& stopped) {
  if (options_.compact_at <= 0 || knows_no_context_) return;
  const Result<std::uint64_t> context = chat_model_.context_tokens();
  if (!context.ok()) {
    terminal::print_warning(fmt::format("`compact_at`: {}", context.error().message));
    knows_no_context_ = true;
    return;
  }
  const auto used = static_cast<double>(answer.prompt_tokens + answer.output_tokens);
  if (used < options_.compact_at * static_cast<double>(context.value())) return;
  const auto kept_begin = chat::kept_turns_begin(messages_, options_.keep_turns);
  if (kept_begin) compact(*kept_begin, context.value(), stopped);
}

void ChatSession::compact(std::size_t kept_begin, std::uint64_t context, const Stopped& stopped) {
  ChatSampling sampling = options_.sampling;
  sampling.fields.temperature = 0;
  sampling.tokens_max = static_cast<std::uint32_t>(
      std::clamp<std::uint64_t>(context / 8, 1, std::max(sampling.tokens_max, 1u)));
  const Result<ChatReply> summary = chat_model_.complete(
      chat::summary_question(messages_, kept_begin), sampling, [](std::string_view) {}, stopped);
  const bool is_whole = summary.ok() && summary.value().finish_reason != "cancelled" &&
                        summary.value().text.find_first_not_of(" \n\t") != std::string::npos;
  if (!is_whole) {
    terminal::print_warning(fmt::format(
        "no summary: {}", summary.ok() ? "the model wrote none" : summary.error().message));
    return;
  }
  const std::size_t before = messages_.size();
  messages_ = chat::with_summary(messages_, kept_begin, summary.value().text);
  chat_model_.fill(messages_);
  fmt::print(stderr, "[{} became a summary of {}]\n",
             terminal::counted(before + 2 - messages_.size(), "message"),
             terminal::counted(summary.value().output_tokens, "token"));
}

}  // namespace pagoda::app
