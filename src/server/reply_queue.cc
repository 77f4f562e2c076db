#include "server/reply_queue.h"

namespace pagoda::server {

class ReplyQueue::Sink : public engine::ReplySink {
 public:
  Sink(std::shared_ptr<ReplyQueue> queue, std::uint32_t prompt, std::uint32_t first_choice)
      : queue_(std::move(queue)), prompt_(prompt), first_choice_(first_choice) {}

  bool wants_more() const override { return !queue_->full_.load(std::memory_order_relaxed); }

  void on_prompt_logprobs(std::span<const engine::TokenScore> scores) override {
    {
      const std::lock_guard lock(queue_->mutex_);
      queue_->batch_.scores.push_back({prompt_, {scores.begin(), scores.end()}});
    }
    queue_->note();
  }

  void on_token(std::uint32_t answer, const engine::OutputToken& chosen) override {
    ReplyEvent event{.choice = first_choice_ + answer};
    event.token = {chosen.token, chosen.ends, {}, chosen.prompt_tokens_cached};
    if (chosen.score != nullptr) event.token->score = *chosen.score;
    queue_->add(std::move(event));
    queue_->note();
  }

  void on_finish(std::uint32_t answer, engine::FinishReason reason,
                 const engine::SequenceRecord& record, const std::string& message) override {
    const std::uint32_t choice = first_choice_ + answer;
    {
      const std::lock_guard lock(queue_->mutex_);
      std::vector<ReplyEvent>& events = queue_->batch_.events;
      if (!engine::ended_well(reason) || events.empty() || events.back().choice != choice ||
          events.back().ending) {
        events.push_back({.choice = choice});
      }
      events.back().ending = {reason, record, message};
    }
    queue_->note();
  }

 private:
  std::shared_ptr<ReplyQueue> queue_;
  std::uint32_t prompt_;
  std::uint32_t first_choice_;
};

void StepNotifier::notify() {
  for (const std::shared_ptr<ReplyQueue>& queue : noted_) queue->wake();
  noted_.clear();
}

std::shared_ptr<engine::ReplySink> ReplyQueue::sink(std::uint32_t prompt,
                                                    std::uint32_t first_choice) {
  return std::make_shared<Sink>(shared_from_this(), prompt, first_choice);
}

void ReplyQueue::add(ReplyEvent event) {
  const std::lock_guard lock(mutex_);
  batch_.events.push_back(std::move(event));
  if (batch_.events.size() >= kEventsMax) full_ = true;
}

ReplyQueue::Batch ReplyQueue::take() {
  const std::lock_guard lock(mutex_);
  batch_.was_full = full_.exchange(false);
  return std::exchange(batch_, {});
}

void ReplyQueue::note() {
  if (std::exchange(noted_, true)) return;
  step_notifier_.note(shared_from_this());
}

void ReplyQueue::wake() {
  noted_ = false;
  wake_();
}

}  // namespace pagoda::server
