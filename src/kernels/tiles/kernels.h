// The sets of the arithmetic of pairs: declarations for tiles/set.cc, contracts in kernels/ops.h.
#pragma once

#include "kernels/ops.h"

namespace pagoda::kernels::PAGODA_TILE_SET {

std::size_t matmul_scratch(std::size_t columns);
std::size_t packed_bytes(const WeightMatrix& weight);
void pack(const WeightMatrix& weight, std::size_t begin, std::size_t end, std::byte* packed);
std::size_t attention_scratch(std::size_t key_dim, std::size_t value_dim);
void to_operand(const float* x, std::size_t columns, std::byte* operands, std::size_t row);
void matmul(const Matmul& job, std::size_t begin, std::size_t end, std::byte* scratch);
void rope(float* head, const RopeRow& rope);
void swiglu(float* gate, const float* up, std::size_t count);
bool store_kv(const kv::memory::SequenceView& view, std::uint64_t position, const float* keys,
              const float* values);
void attend_split(const Attention& job, const AttentionRows& rows, std::uint32_t kv_head,
                  std::uint64_t split, std::byte* scratch, float* partials);
void merge_partials(float* left, const float* right, std::size_t group, std::size_t value_dim);
void finish_partial(const float* partial, std::size_t group, std::size_t value_dim, float* out);

}  // namespace pagoda::kernels::PAGODA_TILE_SET
