// Records one sequence as it is generated: each token with its time.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

#include "base/clock.h"
#include "engine/reply.h"

namespace pagoda::bench {

struct TimedOutput {
  std::vector<TokenId> tokens;
  std::vector<std::int64_t> times_ns;  // when each token came
  bool finished = false;
  // Once finished.
  engine::FinishReason reason = engine::FinishReason::kLength;
  engine::SequenceRecord record;
  std::string message;
};

// Written by the engine's thread, waited for by another.
class RecordingSink final : public engine::ReplySink {
 public:
  explicit RecordingSink(const Clock& clock) : clock_(clock) {}

  void on_token(std::uint32_t answer, const engine::OutputToken& chosen) override;
  void on_finish(std::uint32_t answer, engine::FinishReason reason,
                 const engine::SequenceRecord& record, const std::string& message) override;

  // True once it has finished or has that many tokens; false after `timeout`.
  bool wait_for_tokens(std::size_t tokens, std::chrono::nanoseconds timeout);
  // As far as it has come.
  TimedOutput read() const;

 private:
  const Clock& clock_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  TimedOutput answer_;  // under mutex_
};

}  // namespace pagoda::bench
