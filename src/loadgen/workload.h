// A Workload plans which requests are sent, in which order and when. One thread.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "base/result.h"
#include "loadgen/arrivals.h"
#include "loadgen/lengths.h"
#include "loadgen/prompt.h"
#include "replay/trace.h"

namespace pagoda::loadgen {

struct PlannedRequest {
  std::int64_t scheduled_ns = 0;  // when it should be sent, from the start of the load
  LoadPrompt prompt;
  std::uint32_t output_tokens = 1;
  std::uint32_t user = 0;  // of a conversation
  std::uint32_t turn = 0;  // of the user, from 1; 0: not counted
  std::string session = {};
};

class Workload {
 public:
  virtual ~Workload() = default;

  // The next that comes by itself, whatever was answered; scheduled_ns never goes back. Nothing
  // after the last.
  virtual std::optional<PlannedRequest> next() = 0;
  // Returns the same user's next request, if any, after the reply `answer` came at `now_ns`.
  virtual std::optional<PlannedRequest> follow(const PlannedRequest& /*asked*/,
                                               const std::string& /*answer*/,
                                               std::int64_t /*now_ns*/) {
    return std::nullopt;
  }
  // Requests in all, follow-ups included, if each is answered.
  virtual std::uint64_t count() const = 0;
};

struct RandomText {
  Lengths input = Lengths::between(128, 128);
  Lengths output = Lengths::between(64, 64);
};

// `groups` different prefixes; each request has one of them, and a suffix of its own.
struct SharedPrefixes {
  std::uint32_t groups = 4;
  std::uint32_t prefix_tokens = 256;
  Lengths input = Lengths::between(32, 32);  // of the suffix
  Lengths output = Lengths::between(64, 64);
};

// Users arrive; each asks `turns` times, with all that was said before in front.
struct Conversations {
  std::uint32_t turns = 4;
  double think_s = 1;                        // mean of an exponential, from a reply to the next
  Lengths input = Lengths::between(32, 32);  // of each turn
  Lengths output = Lengths::between(64, 64);
};

struct FixedPrompt {
  std::string text;
  std::uint32_t output_tokens = 64;
};

// Requests of a recorded trace. Blocks with equal ids are equal text, whatever stands before them.
struct TraceReplay {
  replay::Trace trace;
  double speed = 1;                  // 2: twice as fast as recorded
  std::uint32_t block_tokens = 512;  // of one hash id
  double scale = 1;                  // of all lengths, of blocks too
};

struct WorkloadOptions {
  ArrivalOptions arrivals;    // of a trace: unused
  std::uint64_t count = 100;  // of requests, or of users
  std::uint64_t seed = 0;
};

std::unique_ptr<Workload> make_workload(const WorkloadOptions& options, const RandomText& text);
std::unique_ptr<Workload> make_workload(const WorkloadOptions& options,
                                        const SharedPrefixes& prefixes);
std::unique_ptr<Workload> make_workload(const WorkloadOptions& options, const FixedPrompt& prompt);
std::unique_ptr<Workload> make_workload(const WorkloadOptions& options,
                                        const Conversations& conversations);
// An error when the trace has no request, or one goes back in time.
Result<std::unique_ptr<Workload>> make_workload(const WorkloadOptions& options, TraceReplay replay);

}  // namespace pagoda::loadgen
