// Defines the order of a row's tokens (highest logit first, ties to the lowest id) and answers
// questions about the order that need no sorting of the vocabulary.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/result.h"
#include "base/token_id.h"
#include "kernels/ops.h"

namespace pagoda::engine {

// Rows are walked in blocks of this many tokens.
inline constexpr std::size_t kLogitBlock = 1024;
// The first tokens are looked for in groups of this many.
inline constexpr std::size_t kLogitGroup = 64;

constexpr std::size_t logit_blocks(std::size_t tokens) {
  return (tokens + kLogitBlock - 1) / kLogitBlock;
}

inline bool comes_before(std::span<const float> logits, std::uint32_t a, std::uint32_t b) {
  return logits[a] != logits[b] ? logits[a] > logits[b] : a < b;
}

struct BestLogit {
  float logit;
  std::uint32_t id;
};

// Returns the first token in order. An error when a logit is not finite; `position`, that of the
// token these logits are for, goes into its message.
Result<BestLogit> find_argmax(const kernels::KernelSet& kernels, std::span<const float> logits,
                              std::uint64_t position);

// TopKTokens is the outcome of find_top_k and the memory it works in, allocated once.
struct TopKTokens {
  explicit TopKTokens(std::size_t vocabulary) {
    ids.reserve(vocabulary);
    group_bests.reserve(vocabulary / kLogitGroup + 1);
    ordered_bests.reserve(vocabulary / kLogitGroup + 1);
  }

  std::vector<std::uint32_t> ids;
  std::vector<float> group_bests;  // [groups of kLogitGroup tokens]
  std::vector<float> ordered_bests;
};

// Finds the first `count` tokens, in no order; all when there are fewer. Logits must be finite.
void find_top_k(const kernels::KernelSet& kernels, std::span<const float> logits, std::size_t count,
                TopKTokens& first);

// Counts the tokens before this one.
std::size_t count_before(std::span<const float> logits, std::uint32_t id);

}  // namespace pagoda::engine
