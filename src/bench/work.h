// A piece of work that any engine can be asked for, and how fast ours does it.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "base/result.h"
#include "bench/bench_engine.h"

namespace pagoda::bench {

// With new tokens: `sequences` of them at once decode `new_tokens` each, behind `depth` tokens.
// Without: one sequence's next `prompt_tokens` are computed, behind `depth` tokens.
struct Work {
  std::string_view name;  // on the command line
  std::string_view title;
  std::uint32_t depth = 0;
  std::uint32_t prompt_tokens = 0;
  std::uint32_t new_tokens = 0;
  std::uint32_t sequences = 1;

  bool is_prefill() const { return new_tokens == 0; }
  // Returns the context of one sequence at its end. Ours decodes behind a token at least, at depth
  // 0 too.
  std::uint64_t context_tokens() const;
};

// Engines are compared by these: prompts, single sequences at growing depths, many sequences at
// once.
std::span<const Work> compared_works();

// Tokens per second of this work: of a prompt its tokens over the time to first token, of
// decoding the tokens of all sequences over the time of a step. What stands before is
// computed first and found in the cache when the work is asked for again; a prompt that is itself
// measured must be new to the cache, else an error: each measurement has a `repeat` of its own.
Result<double> tokens_per_second(BenchEngine& engine, const Work& work, std::uint64_t repeat);

}  // namespace pagoda::bench
