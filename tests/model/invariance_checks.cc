#include "model/invariance_checks.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>

namespace pagoda::model {

namespace {

bool all_finite(const Logits& logits) {
  for (const float logit : logits) {
    if (!std::isfinite(logit)) return false;
  }
  return true;
}

}  // namespace

bool same_bits(const Logits& a, const Logits& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

Logits plain_run(const ModelParts& model, const Conditions& conditions, const Tokens& tokens) {
  return run_sequences(model,
                       {.kernels = conditions.kernels,
                        .element = conditions.element,
                        .policy = conditions.policy},
                       {tokens})
      .front();
}

void expect_chunks_threads_and_ids_change_nothing(const ModelParts& model, const Conditions& base,
                                                  const Tokens& tokens, std::span<const Way> ways) {
  const Logits expected = plain_run(model, base, tokens);
  ASSERT_TRUE(all_finite(expected)) << "a NaN was read from a free block";
  for (const Way& way : ways) {
    Conditions conditions = base;
    conditions.chunk = way.chunk;
    conditions.threads = way.threads;
    conditions.shuffle_seed = 40 + way.chunk;
    const auto logits = run_sequences(model, conditions, {tokens});
    ASSERT_TRUE(same_bits(logits.front(), expected))
        << base.kernels->name << ", chunks of " << way.chunk << ", " << way.threads << " threads";
  }
}

void expect_neighbours_change_nothing(const ModelParts& model, const Conditions& base,
                                      std::size_t longest) {
  std::vector<Tokens> sequences;
  for (std::size_t s = 0; s < 8; ++s) {
    sequences.push_back(random_tokens(model.config, 1 + (longest * (s + 1)) / 8 - s % 3, 70 + s));
  }
  std::vector<Logits> alone;
  for (const Tokens& tokens : sequences) alone.push_back(plain_run(model, base, tokens));
  for (const Way& way : {Way{2, 5}, Way{3, 0}, Way{5, 5}, Way{8, 0}}) {
    Conditions conditions = base;
    conditions.chunk = way.chunk;
    conditions.threads = way.threads;
    conditions.shuffle_seed = 3;
    const std::vector<Logits> together = run_sequences(model, conditions, sequences);
    for (std::size_t s = 0; s < sequences.size(); ++s) {
      ASSERT_TRUE(same_bits(together[s], alone[s]))
          << base.kernels->name << ", sequence " << s << " of 8, chunks of " << way.chunk << ", "
          << way.threads << " threads";
    }
  }
}

std::vector<const kernels::KernelSet*> varied_sets() {
  const std::span<const kernels::KernelSet* const> all = kernels::available_sets();
  const bool has_vector_tiles = std::any_of(
      all.begin(), all.end(), [](const kernels::KernelSet* set) { return set->name == "avx512"; });
  std::vector<const kernels::KernelSet*> sets;
  for (const kernels::KernelSet* const set : all) {
    if (set == &kernels::ref_set(kernels::Numerics::kInt8Bf16)) continue;
    if (set->name == "tiles" && has_vector_tiles) continue;
    sets.push_back(set);
  }
  return sets;
}

kernels::KernelSet with_turned_pages(const kernels::KernelSet& set) {
  kernels::KernelSet turned = set;
  turned.value_order = set.value_order == kv::memory::ValueOrder::kRows
                           ? kv::memory::ValueOrder::kTokenGroups
                           : kv::memory::ValueOrder::kRows;
  turned.key_order = set.key_order == kv::memory::KeyOrder::kRows ? kv::memory::KeyOrder::kColumns
                                                                  : kv::memory::KeyOrder::kRows;
  return turned;
}

}  // namespace pagoda::model
