// A launch as ranks receive it: the copies, tokens, positions and block tables, without what is
// sampled. Ranks check all of it before they use any.
//
//   copies, sequences and rows of each, in the order of the writer's fields; every list begins with
//   its length. Numbers are as this machine has them: both ends are one program.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/result.h"
#include "base/token_id.h"
#include "engine/runner.h"
#include "kv/cache.h"
#include "model/batch.h"

namespace pagoda::engine {

// Writes the launch and the rows whose logits are wanted. `message` keeps its memory.
void write_launch(const Launch& launch, std::span<const std::uint32_t> logit_rows,
                  std::uint32_t block_tokens, std::vector<std::byte>& message);

// The numbers of a launch are checked against these.
struct LaunchLimits {
  std::uint32_t rows_max = 0;
  std::uint32_t pages = 0;
  std::uint32_t groups = 0;
  std::uint32_t block_tokens = 0;
  std::uint32_t vocabulary = 0;
};

// A launch that was read. Spans are good until the next one is.
class ReadLaunch {
 public:
  // kCorrupt: it is not what write_launch() made within these limits.
  Status read(std::span<const std::byte> message, const LaunchLimits& limits);

  std::span<const kv::Copy> copies() const { return copies_; }
  std::span<const std::uint32_t> hidden_rows() const { return hidden_rows_; }
  std::span<const std::uint32_t> logit_rows() const { return logit_rows_; }
  // Without rows of logits: those are asked for later, a few at a time.
  model::Batch batch() const {
    return {.tokens = tokens_, .sequences = sequences_, .logit_rows = {}};
  }

 private:
  std::vector<kv::Copy> copies_;
  std::vector<TokenId> tokens_;
  std::vector<kv::BlockId> blocks_;  // of all tables, one after the other
  std::vector<kv::memory::BlockTable> tables_;
  std::vector<model::SequenceRows> sequences_;
  std::vector<std::uint32_t> hidden_rows_;
  std::vector<std::uint32_t> logit_rows_;
};

}  // namespace pagoda::engine
