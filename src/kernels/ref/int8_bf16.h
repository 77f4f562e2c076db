// The int8_bf16 numerics (kernels/ops.h), one value at a time.
#pragma once

#include "kernels/ops.h"

namespace pagoda::kernels::ref {

// Zero for subnormals, the sign kept.
float without_subnormals(float x);

// The activations of a row as bf16 and as limbs, and the product with weights of either kind.
void pack_activations_int8_bf16(const float* x, std::size_t columns, std::byte* activations,
                                std::size_t row);
void matmul_int8_bf16(const Matmul& job, std::size_t begin, std::size_t end, std::byte* scratch);
bool store_kv_int8_bf16(const kv::memory::SequenceView& view, std::uint64_t position,
                        const float* keys, const float* values);
void attend_split_int8_bf16(const Attention& job, const AttentionRows& rows, std::uint32_t kv_head,
                            std::uint64_t split, std::byte* scratch, float* partials);
void score_split_int8_bf16(const Attention& job, const AttentionRows& rows, std::uint32_t kv_head,
                           std::uint64_t split, std::byte* scratch, ScoreRows scores);

}  // namespace pagoda::kernels::ref
