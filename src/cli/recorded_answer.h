// One answer as somebody sees it who looks at the clock: each token with its time.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

#include "base/clock.h"
#include "engine/reply.h"

namespace pagoda::cli {

struct TimedAnswer {
  std::vector<TokenId> tokens;
  std::vector<std::int64_t> times_ns;  // when each token came
  bool finished = false;
  // Once finished.
  engine::FinishReason reason = engine::FinishReason::kLength;
  engine::AnswerRecord record;
  std::string message;
};

// Written by the engine's thread, waited for by another.
class RecordedAnswer final : public engine::ReplySink {
 public:
  explicit RecordedAnswer(const Clock& clock) : clock_(clock) {}

  void on_token(std::uint32_t answer, const engine::ChosenToken& chosen) override;
  void on_finish(std::uint32_t answer, engine::FinishReason reason,
                 const engine::AnswerRecord& record, const std::string& message) override;

  // True once it has finished or has that many tokens; false after `patience`.
  bool wait_for_tokens(std::size_t tokens, std::chrono::nanoseconds patience);
  // As far as it has come.
  TimedAnswer read() const;

 private:
  const Clock& clock_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  TimedAnswer answer_;  // under mutex_
};

}  // namespace pagoda::cli
