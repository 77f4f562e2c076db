// The sets of the int8_bf16 numerics: declarations for int8_bf16/set.cc, contracts in
// kernels/ops.h.
#pragma once

#include "kernels/ops.h"

namespace pagoda::kernels::PAGODA_ISA {

std::size_t matmul_scratch(std::size_t columns);
std::size_t packed_bytes(const WeightMatrix& weight);
void pack(const WeightMatrix& weight, std::size_t begin, std::size_t end, std::byte* packed);
std::size_t attention_scratch(std::size_t key_dim, std::size_t value_dim);
void pack_activations(const float* x, std::size_t columns, std::byte* activations, std::size_t row);
void matmul(const Matmul& job, std::size_t begin, std::size_t end, std::byte* scratch);
void rope(float* head, const RopeRow& rope);
void swiglu(float* gate, const float* up, std::size_t count);
void geglu(float* gate, const float* up, std::size_t count);
void clamped_swiglu(float* gate, const float* up, std::size_t count);
void soft_cap(float* x, std::size_t count, float scale, float cap);
bool store_kv(const kv::memory::SequenceView& view, std::uint64_t position, const float* keys,
              const float* values);
void attend_split(const Attention& job, const AttentionRows& rows, std::uint32_t kv_head,
                  std::uint64_t split, std::byte* scratch, float* partials);
void score_split(const Attention& job, const AttentionRows& rows, std::uint32_t kv_head,
                 std::uint64_t split, std::byte* scratch, ScoreRows scores);
void merge_partials(float* left, const float* right, std::size_t group, std::size_t value_dim);
void normalise_partial(const float* partial, std::size_t group, std::size_t value_dim, float* out);

}  // namespace pagoda::kernels::PAGODA_ISA
