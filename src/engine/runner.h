// Runner is the device edge: it computes the engine's launches.
//
// launch() takes all it needs of a Launch before it returns: block tables and tokens may change
// afterwards. SamplingStates stay until the launch is collected; the runner adds to each the token
// it sampled. Launches are computed in order and collected in order; a runner that allows launches
// ahead computes them while the engine plans the next. Copies of a launch are done before its
// tokens are computed. Thread rule: the engine's thread calls.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "base/result.h"
#include "base/token_id.h"
#include "engine/logits_reader.h"
#include "engine/sampled_token.h"
#include "engine/sampler.h"
#include "kv/cache.h"
#include "kv/memory/selected_pages.h"
#include "kv/memory/view.h"

namespace pagoda::engine {

// Names a running sequence to the runner, for tokens that only the runner knows yet.
using SequenceHandle = const void*;

// LaunchRows are consecutive tokens of one sequence.
struct LaunchRows {
  SequenceHandle handle = nullptr;
  std::uint32_t rows = 0;
  std::uint64_t first_position = 0;
  // [rows - drafts], or one less when the last one is the token that the launch before sampled for
  // `handle`.
  std::span<const TokenId> tokens;
  std::span<const kv::memory::BlockTable> tables;  // one per group
  kv::memory::AttentionSpec policy = {};           // what layers without a window of their own see
  std::span<const TokenId> drafts = {};            // draft tokens behind the sequence's last token
  // Pages that a KV policy has left of the sequence; the runner adds to its counters until the
  // launch is collected.
  kv::memory::SelectedPages selected = {};
};

// Samples a token by the logits of a row. Several samples may use one row: sequences that fork.
// Where drafts follow the row, the rows behind it sample as well, in order, as long as each token
// sampled is the draft token of the next row. What lies behind the first that is not has no effect.
struct LaunchSample {
  SequenceHandle handle = nullptr;
  std::uint32_t row = 0;       // row of the launch
  std::uint64_t position = 0;  // position that the token will have
  SamplingState* sampling = nullptr;
  std::span<const TokenId> drafts = {};  // [i]: the token of row + 1 + i
};

// Asks for the log-probability of a known token: the one that follows a prompt token.
struct LaunchScore {
  std::uint32_t row = 0;
  TokenId token;
  std::uint32_t top = 0;
  std::uint64_t position = 0;      // the token's
  LogitsReader* reader = nullptr;  // is given the row, too; nullptr: nobody
};

struct Launch {
  std::span<const kv::Copy> copies;
  std::span<const LaunchRows> rows;
  std::span<const LaunchSample> samples;            // ordered by row
  std::span<const LaunchScore> scores;              // ordered by row
  std::span<const std::uint32_t> hidden_rows = {};  // whose hidden states are pooled, in order
};

// Collected holds a launch's results, in the order of its samples and scores; a sample with drafts
// has a result more for each, unspecified behind the first that differs from its draft token. Valid
// until the next collect().
struct Collected {
  std::span<Result<SampledToken>> samples;
  std::span<const TokenScore> scores;
  // Set: the device is lost, and neither this launch nor any after it has computed anything.
  const Error* lost = nullptr;
  // [LaunchRows]: not 0 where a query, key or value among its tokens was not finite in the cache's
  // element; where there are drafts, 1 + the first such row. Empty: none was.
  std::span<const std::uint8_t> nonfinite = {};
  std::span<const float> hidden = {};  // [hidden_rows, hidden_width]
  // True: a CUDA graph was made meanwhile, so that the time says nothing about such launches.
  bool was_slowed = false;
};

class Runner {
 public:
  virtual ~Runner() = default;
  // Returns how many launches may be running when another one is given.
  virtual std::uint32_t launches_ahead() const { return 0; }
  // Returns the width of hidden states; 0: the runner gives none, and hidden_rows are empty.
  virtual std::uint32_t hidden_width() const { return 0; }
  // Returns how many draft tokens a launch may have, of one sequence and of all; 0: none.
  virtual std::uint32_t drafts_max() const { return 0; }
  virtual std::uint32_t launch_drafts_max() const { return UINT32_MAX; }
  // Returns what a row more costs, against a launch of one row, as far as is known without
  // measuring.
  virtual float row_cost() const { return 0.1f; }
  // True: the runner obeys LaunchRows::selected, so that KV policies may select pages.
  virtual bool observes_attention() const { return false; }
  // True: the device can be lost while nothing runs, and find_loss() finds that out.
  virtual bool may_vanish() const { return false; }
  virtual std::optional<Error> find_loss() { return std::nullopt; }
  // Returns the bytes that the processes which compute a model have sent to each other.
  virtual std::uint64_t bytes_exchanged() const { return 0; }
  virtual void launch(const Launch& launch) = 0;
  virtual Collected collect() = 0;
};

}  // namespace pagoda::engine
