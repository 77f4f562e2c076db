// Verification compares outputs, to the bit.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/token_id.h"
#include "engine/reply.h"

namespace pagoda::verify {

// One output: its tokens and the log-probabilities of each and of the best ones beside it.
struct VerifiedOutput {
  std::vector<engine::TokenScore> scores;  // one a token
  std::optional<engine::FinishReason> reason;
  engine::SequenceRecord record;
  std::string message;
};

// The outputs of one request; written by the engine's thread, waited for by another.
class VerifySink final : public engine::ReplySink {
 public:
  explicit VerifySink(std::uint32_t answers) : answers_(answers) {}

  void on_token(std::uint32_t answer, const engine::OutputToken& chosen) override;
  void on_finish(std::uint32_t answer, engine::FinishReason reason,
                 const engine::SequenceRecord& record, const std::string& message) override;

  // True once all have ended; false after `timeout`.
  bool wait(std::chrono::nanoseconds timeout);
  // Once all have ended.
  std::vector<VerifiedOutput> take();

 private:
  std::mutex mutex_;
  std::condition_variable ended_;
  std::size_t ended_count_ = 0;          // under mutex_
  std::vector<VerifiedOutput> answers_;  // under mutex_
};

// Where outputs part for the first time.
struct OutputDifference {
  std::size_t question = 0;    // from 0
  std::uint64_t position = 0;  // in the output, from 0
  std::string got;             // token and log-probability, or "its end"
  std::string expected;
};

// The first in the order of questions, then of tokens; nothing when all are equal to the last bit.
std::optional<OutputDifference> first_difference(std::span<const VerifiedOutput> got,
                                                 std::span<const VerifiedOutput> expected);
// Returns a digest of all tokens, log-probabilities and ranks: 32 hexadecimal digits.
std::string digest_of(std::span<const VerifiedOutput> answers);

}  // namespace pagoda::verify
