// Attention in plain C++: see kernels/ops.h for the contracts.
#pragma once

#include "kernels/ops.h"

namespace pagoda::kernels::ref {

std::size_t attention_scratch(std::size_t key_dim, std::size_t value_dim);
void attend_split(const Attention& job, const AttentionRows& rows, std::uint32_t kv_head,
                  std::uint64_t split, std::byte* scratch, float* partials);
void score_split(const Attention& job, const AttentionRows& rows, std::uint32_t kv_head,
                 std::uint64_t split, std::byte* scratch, ScoreRows scores);
void merge_partials(float* left, const float* right, std::size_t group, std::size_t value_dim);
void normalise_partial(const float* partial, std::size_t group, std::size_t value_dim, float* out);

}  // namespace pagoda::kernels::ref
