// The device edge: what the engine asks of whoever computes.
//
// launch() takes all it needs of a Launch before it returns: block tables and tokens may change
// afterwards. SamplingStates stay until the launch is collected; the runner adds to each the token
// it chose. Launches are computed in order
// and collected in order; a runner that allows launches ahead computes them while the engine plans
// the next. Copies of a launch are done before its rows. Thread rule: the engine's thread calls.
#pragma once

#include <cstdint>
#include <span>

#include "base/result.h"
#include "base/token_id.h"
#include "engine/sampled_token.h"
#include "engine/sampler.h"
#include "kv/cache.h"
#include "kv/memory/view.h"

namespace pagoda::engine {

// Names a running sequence to the runner, for tokens that only it knows yet.
using SequenceHandle = const void*;

// Consecutive rows of one sequence.
struct LaunchRows {
  SequenceHandle handle = nullptr;
  std::uint32_t rows = 0;
  std::uint64_t first_position = 0;
  // [rows], or one less when the last one is the token that the launch before chose for `handle`.
  std::span<const TokenId> tokens;
  std::span<const kv::memory::BlockTable> tables;  // one per group
};

// Choose a token by the logits of a row. Several may use one row: sequences that fork.
struct LaunchSample {
  SequenceHandle handle = nullptr;
  std::uint32_t row = 0;       // of the launch
  std::uint64_t position = 0;  // that the token will have
  SamplingState* sampling = nullptr;
};

// The log-probability of a token that is known: the one that follows a prompt row.
struct LaunchScore {
  std::uint32_t row = 0;
  TokenId token;
  std::uint32_t top = 0;
};

struct Launch {
  std::span<const kv::Copy> copies;
  std::span<const LaunchRows> rows;
  std::span<const LaunchSample> samples;  // by row
  std::span<const LaunchScore> scores;    // by row
};

// What a launch gave, in the order of its samples and scores. Valid until the next collect().
struct Collected {
  std::span<Result<SampledToken>> samples;
  std::span<const TokenScore> scores;
  // What computes is lost: neither this launch nor any after it has computed anything.
  const Error* lost = nullptr;
  // Of each of the launch's rows: 1 where a query, key or value among them was not finite in the
  // cache's element. Empty: none was.
  std::span<const std::uint8_t> nonfinite = {};
};

class Runner {
 public:
  virtual ~Runner() = default;
  // How many launches may be running when another one is given.
  virtual std::uint32_t launches_ahead() const { return 0; }
  virtual void launch(const Launch& launch) = 0;
  virtual Collected collect() = 0;
};

}  // namespace pagoda::engine
