// Operations on single rows and heads, in plain C++: see kernels/ops.h for the contracts.
#pragma once

#include "kernels/ops.h"

namespace pagoda::kernels::ref {

void unpack_row(const WeightMatrix& weight, std::size_t row, float* out);
std::size_t matmul_scratch(std::size_t columns);
std::size_t packed_bytes(const WeightMatrix& weight);
void pack(const WeightMatrix& weight, std::size_t begin, std::size_t end, std::byte* packed);
void pack_activations(const float* x, std::size_t columns, std::byte* activations, std::size_t row);
void matmul(const Matmul& job, std::size_t begin, std::size_t end, std::byte* scratch);
void rms_norm(const float* x, const float* weight, float epsilon, std::size_t width, float* y);
void rope(float* head, const RopeRow& rope);
void swiglu(float* gate, const float* up, std::size_t count);
void geglu(float* gate, const float* up, std::size_t count);
void clamped_swiglu(float* gate, const float* up, std::size_t count);
void soft_cap(float* x, std::size_t count, float scale, float cap);
bool store_kv(const kv::memory::SequenceView& view, std::uint64_t position, const float* keys,
              const float* values);

}  // namespace pagoda::kernels::ref
