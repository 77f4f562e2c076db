// An Outcome records how one request of a load ended, and when.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace pagoda::loadgen {

enum class OutcomeKind : std::uint8_t {
  kAnswered,
  kConnection,   // refused, reset, closed before a reply, no descriptor
  kStatus,       // HTTP said so
  kServerError,  // said inside of a stream that had begun
  kMalformed,    // not HTTP, or not JSON
  kShort,        // ended without a reason, or with fewer tokens than asked and no reason to stop
  kTimedOut,
  kUnfinished,  // the load was stopped first: no error, and no reply
};
inline constexpr std::size_t kOutcomeKinds = 8;

std::string_view outcome_name(OutcomeKind kind);

// Times are from the start of the load.
struct Outcome {
  std::int64_t scheduled_ns = 0;  // when it should have been sent
  std::int64_t sent_ns = 0;       // when it was given to the system
  std::int64_t first_ns = 0;      // first text; of a whole reply: its end
  std::int64_t last_ns = 0;       // last text
  std::int64_t end_ns = 0;
  OutcomeKind kind = OutcomeKind::kUnfinished;
  std::uint32_t user = 0;  // as planned
  std::uint32_t turn = 0;
  int status = 0;                                   // of HTTP; 0: none came
  std::uint64_t output_tokens = 0;                  // as the server counts, else pieces of text
  std::optional<std::uint64_t> prompt_tokens = {};  // where the server reports them
  std::optional<std::uint64_t> cached_tokens = {};
  std::uint64_t answer_hash = 0;

  bool answered() const { return kind == OutcomeKind::kAnswered; }
};

}  // namespace pagoda::loadgen
