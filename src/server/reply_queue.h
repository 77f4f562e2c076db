// From the engine's thread to a connection's: events are gathered under a lock, and the connection
// is woken once per step of the engine, however many events the step had for it.
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
};

struct FinishInfo {
  engine::FinishReason reason;
  engine::SequenceRecord record;
  std::string message;
};

// A token, the end of a choice, or its last token with its end.
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

// Which queues got something in the step that runs. The engine's thread alone uses it.
class StepNotifier {
 public:
  void note(std::shared_ptr<ReplyQueue> queue) { noted_.push_back(std::move(queue)); }
  // After a step.
  void notify();

 private:
  std::vector<std::shared_ptr<ReplyQueue>> noted_;
};

// The events of one API request, whatever number of prompts it has.
class ReplyQueue : public std::enable_shared_from_this<ReplyQueue> {
 public:
  // Events that wait to be taken; beyond these the request gets no tokens until they are.
  static constexpr std::size_t kEventsMax = 256;

  struct Batch {
    std::vector<ReplyEvent> events;
    std::vector<PromptScores> scores;
    bool was_full = false;  // the engine waits to be told that it was taken
  };

  // `wake` is called on the engine's thread and must not block. The notifier outlives the engine.
  ReplyQueue(StepNotifier& step_notifier, std::function<void()> wake)
      : step_notifier_(step_notifier), wake_(std::move(wake)) {}

  // The sink of prompt number `prompt`, whose sequences are choices `first_choice` and on.
  std::shared_ptr<engine::ReplySink> sink(std::uint32_t prompt, std::uint32_t first_choice);

  // Everything since the last call, in order. Any thread.
  Batch take();

 private:
  friend class StepNotifier;
  class Sink;

  void add(ReplyEvent event);
  void note();
  void wake();

  StepNotifier& step_notifier_;
  std::function<void()> wake_;
  bool noted_ = false;  // of the engine's thread
  std::mutex mutex_;
  Batch batch_;                    // under mutex_
  std::atomic<bool> full_{false};  // changes under mutex_
};

}  // namespace pagoda::server
