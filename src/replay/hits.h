// How much of what was asked for was there.
#pragma once

#include <algorithm>
#include <cstdint>

#include "replay/trace.h"

namespace pagoda::replay {

struct HitCounts {
  std::uint64_t blocks = 0;
  std::uint64_t blocks_hit = 0;
  std::uint64_t tokens = 0;
  std::uint64_t tokens_hit = 0;

  // Hits are a prefix of the request. Block i has the input's tokens from i * block_tokens on,
  // at most block_tokens and possibly none, so that the first n have min(input, n * block_tokens).
  void add(const TraceRequest& request, std::uint64_t hit, std::uint64_t block_tokens) {
    blocks += request.blocks;
    blocks_hit += hit;
    tokens += std::min(request.input_tokens, request.blocks * block_tokens);
    tokens_hit += std::min(request.input_tokens, hit * block_tokens);
  }
  void add(const HitCounts& other) {
    blocks += other.blocks;
    blocks_hit += other.blocks_hit;
    tokens += other.tokens;
    tokens_hit += other.tokens_hit;
  }

  // 0 when nothing was asked for.
  double blocks_hit_rate() const { return rate(blocks_hit, blocks); }
  double tokens_hit_rate() const { return rate(tokens_hit, tokens); }

 private:
  static double rate(std::uint64_t hit, std::uint64_t all) {
    return all == 0 ? 0.0 : static_cast<double>(hit) / static_cast<double>(all);
  }
};

}  // namespace pagoda::replay
