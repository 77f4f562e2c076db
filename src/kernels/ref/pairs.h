// The arithmetic of pairs (kernels/ops.h), one value at a time.
#pragma once

#include "kernels/ops.h"

namespace pagoda::kernels::ref {

// Zero for subnormals, the sign kept.
float without_subnormals(float x);

// The operand of a row as bf16 and as digits, and the product with weights of either kind.
void to_operand_pairs(const float* x, std::size_t columns, std::byte* operands, std::size_t row);
void matmul_pairs(const Matmul& job, std::size_t begin, std::size_t end, std::byte* scratch);
bool store_kv_pairs(const kv::memory::SequenceView& view, std::uint64_t position, const float* keys,
                    const float* values);
void attend_split_pairs(const Attention& job, const AttentionRows& rows, std::uint32_t kv_head,
                        std::uint64_t split, std::byte* scratch, float* partials);

}  // namespace pagoda::kernels::ref
