// A conversation in the terminal: what was said so far, and what becomes of it when the context is
// full.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "app/chat_model.h"
#include "base/result.h"
#include "chat/compaction.h"
#include "chat/turns.h"
#include "text/chat_template.h"

namespace pagoda::app {

struct ChatSessionOptions {
  std::string system;
  ChatSampling sampling;
  // The order in which turns are dropped when the context is full; unset: none is, and questions
  // fail.
  std::optional<chat::DropOrder> truncation = chat::DropOrder::kOldest;
  double compact_at = 0;  // the share of the context from which on older turns are summarised
  std::size_t keep_turns = chat::kKeepTurnsDefault;
};

class ChatSession {
 public:
  // Both must outlive the session.
  ChatSession(ChatModel& chat_model, const ChatSessionOptions& options)
      : chat_model_(chat_model), options_(options) {
    reset();
  }

  void reset();
  // Asks one question, and prints the answer to stdout and what it cost to stderr. The exchange is
  // part of the conversation only when it went well.
  Status ask(const std::string& question);

  const text::ChatJson& messages() const { return messages_; }

 private:
  // Leaves a part of the oldest turns out; false: there is nothing that may go.
  bool drop_turns();
  using Stopped = std::function<bool()>;
  void compact_if_full(const ChatReply& answer, const Stopped& stopped);
  void compact(std::size_t kept_begin, std::uint64_t context, const Stopped& stopped);

  ChatModel& chat_model_;
  const ChatSessionOptions& options_;
  text::ChatJson messages_;
  bool knows_no_context_ = false;  // the server does not tell
};

}  // namespace pagoda::app
