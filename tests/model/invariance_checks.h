// Checks that nothing which must not matter changes a logit, for tests of invariance.
#pragma once

#include <span>
#include <vector>

#include "model/test_model.h"

namespace pagoda::model {

bool same_bits(const Logits& a, const Logits& b);

// Runs the sequence alone, at once, on one thread, in order: the reference for all other runs.
Logits plain_run(const ModelParts& model, const Conditions& conditions, const Tokens& tokens);

// How a sequence is computed.
struct Way {
  std::size_t threads;
  std::uint32_t chunk;  // 0: all at once
};
inline constexpr Way kWays[] = {{1, 1}, {1, 64}, {2, 16}, {2, 0}, {3, 64}, {5, 0}, {8, 64}};
// Conditions for long sequences, and for short ones.
inline constexpr Way kLongWays[] = {{3, 64}, {8, 0}};
inline constexpr Way kFewWays[] = {{1, 7}, {2, 0}, {3, 16}, {5, 1}, {8, 0}};

void expect_chunks_threads_and_ids_change_nothing(const ModelParts& model, const Conditions& base,
                                                  const Tokens& tokens,
                                                  std::span<const Way> ways = kWays);

void expect_neighbours_change_nothing(const ModelParts& model, const Conditions& base,
                                      std::size_t longest);

// Returns every set except those that are slow and whose bits another set has: the int8_bf16
// reference and, beside avx512, whose vector functions they have on x86, emulated tiles.
std::vector<const kernels::KernelSet*> varied_sets();

// The set with each order of pages reversed.
kernels::KernelSet with_turned_pages(const kernels::KernelSet& set);

}  // namespace pagoda::model
