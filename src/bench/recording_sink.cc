#include "bench/recording_sink.h"

namespace pagoda::bench {

void RecordingSink::on_token(std::uint32_t /*answer*/, const engine::OutputToken& chosen) {
  const std::int64_t now_ns = clock_.now_ns();
  {
    const std::lock_guard lock(mutex_);
    answer_.tokens.push_back(chosen.token);
    answer_.times_ns.push_back(now_ns);
  }
  changed_.notify_one();
}

void RecordingSink::on_finish(std::uint32_t /*answer*/, engine::FinishReason reason,
                              const engine::SequenceRecord& record, const std::string& message) {
  {
    const std::lock_guard lock(mutex_);
    answer_.finished = true;
    answer_.reason = reason;
    answer_.record = record;
    answer_.message = message;
  }
  changed_.notify_one();
}

bool RecordingSink::wait_for_tokens(std::size_t tokens, std::chrono::nanoseconds timeout) {
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, timeout,
                           [&] { return answer_.finished || answer_.tokens.size() >= tokens; });
}

TimedOutput RecordingSink::read() const {
  const std::lock_guard lock(mutex_);
  return answer_;
}

}  // namespace pagoda::bench
