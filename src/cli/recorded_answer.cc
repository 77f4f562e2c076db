#include "cli/recorded_answer.h"

namespace pagoda::cli {

void RecordedAnswer::on_token(std::uint32_t /*answer*/, const engine::ChosenToken& chosen) {
  const std::int64_t now_ns = clock_.now_ns();
  {
    const std::lock_guard lock(mutex_);
    answer_.tokens.push_back(chosen.token);
    answer_.times_ns.push_back(now_ns);
  }
  changed_.notify_one();
}

void RecordedAnswer::on_finish(std::uint32_t /*answer*/, engine::FinishReason reason,
                               const engine::AnswerRecord& record, const std::string& message) {
  {
    const std::lock_guard lock(mutex_);
    answer_.finished = true;
    answer_.reason = reason;
    answer_.record = record;
    answer_.message = message;
  }
  changed_.notify_one();
}

bool RecordedAnswer::wait_for_tokens(std::size_t tokens, std::chrono::nanoseconds patience) {
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, patience,
                           [&] { return answer_.finished || answer_.tokens.size() >= tokens; });
}

TimedAnswer RecordedAnswer::read() const {
  const std::lock_guard lock(mutex_);
  return answer_;
}

}  // namespace pagoda::cli
