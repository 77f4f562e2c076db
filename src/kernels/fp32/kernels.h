// The vectorised set: declarations for fp32/set.cc, contracts in kernels/ops.h.
#pragma once

#include "kernels/ops.h"

namespace pagoda::kernels {

const KernelSet& fp32_set();

}  // namespace pagoda::kernels

namespace pagoda::kernels::fp32 {

void unpack_row(const WeightMatrix& weight, std::size_t row, float* out);
std::size_t matmul_scratch(std::size_t columns);
std::size_t attention_scratch(std::size_t key_dim, std::size_t value_dim);
void matmul(const Matmul& job, std::size_t begin, std::size_t end, std::byte* scratch);
void rms_norm(const float* x, const float* weight, float epsilon, std::size_t width, float* y);
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
float finite_max(const float* x, std::size_t count);
float exp_sum(const float* x, std::size_t count, float best);
std::uint64_t sampling_weights(const SamplingWeights& job);
std::uint64_t mass_from(const float* x, const std::uint32_t* weights, std::size_t count,
                        float x_min);

}  // namespace pagoda::kernels::fp32
