// Carries replies from the engine's thread to a connection's: events are collected under a lock,
// and the connection is woken once per engine step, however many events the step had for it.
//
//   engine's thread   on_token, on_finish -> queue, notifier | after the step: notify -> wake
//   connection                                               | wake -> take
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "engine/reply.h"

namespace pagoda::server {

struct SentToken {
  TokenId token;
  bool ends = false;
  std::optional<engine::TokenScore> score;
  std::uint64_t prompt_tokens_cached = 0;
};

struct FinishInfo {
  engine::FinishReason reason;
  engine::SequenceRecord record;
  std::string message;
};

// A token, the end of a choice, or the last token together with the end. An end by an error is an
// event of its own: a stop string in the tokens before it may have ended the choice already.
struct ReplyEvent {
  std::uint32_t choice = 0;
  std::optional<SentToken> token = {};
  std::optional<FinishInfo> ending = {};
};

struct PromptScores {
  std::uint32_t prompt = 0;
  std::vector<engine::TokenScore> scores;
};

class ReplyQueue;

// Holds the queues that got events in the current step. Only the engine's thread uses it.
class StepNotifier {
 public:
  void note(std::shared_ptr<ReplyQueue> queue) { noted_.push_back(std::move(queue)); }
  // Wakes these queues; called after each step.
  void notify();

 private:
  std::vector<std::shared_ptr<ReplyQueue>> noted_;
};

// Holds the events of one API request, over all its prompts.
class ReplyQueue : public std::enable_shared_from_this<ReplyQueue> {
 public:
  // At this many unread events the request gets no further tokens until take().
  static constexpr std::size_t kEventsMax = 256;

  struct Batch {
    std::vector<ReplyEvent> events;
    std::vector<PromptScores> scores;
    bool was_full = false;  // the queue was full, and the engine waits to be told that it was read
  };

  // `wake` is called on the engine's thread and must not block. The notifier outlives the engine.
  ReplyQueue(StepNotifier& step_notifier, std::function<void()> wake)
      : step_notifier_(step_notifier), wake_(std::move(wake)) {}

  // Returns the sink of prompt `prompt`, whose sequences are choices `first_choice` and following.
  std::shared_ptr<engine::ReplySink> sink(std::uint32_t prompt, std::uint32_t first_choice);

  // Returns all events since the last call, in order. Any thread may call this.
  Batch take();

 private:
  friend class StepNotifier;
  class Sink;

  void add(ReplyEvent event);
  void note();
  void wake();

  StepNotifier& step_notifier_;
  std::function<void()> wake_;
  bool noted_ = false;  // used by the engine's thread alone
  std::mutex mutex_;
  Batch batch_;                    // guarded by mutex_
  std::atomic<bool> full_{false};  // written with mutex_ held
};

}  // namespace pagoda::server
