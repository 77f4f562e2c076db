// Operations on single rows and heads, in plain C++: see kernels/ops.h for the contracts.
#pragma once

#include "kernels/ops.h"

namespace pagoda::kernels::ref {

void unpack_row(const WeightMatrix& weight, std::size_t row, float* out);
void matmul(const Matmul& job, std::size_t begin, std::size_t end, float* scratch);
void rms_norm(const float* x, const float* weight, float epsilon, std::size_t width, float* y);
void rope(float* head, const RopeRow& rope);
void swiglu(float* gate, const float* up, std::size_t count);
void store_kv(const kv::memory::SequenceView& view, std::uint64_t position, const float* keys,
              const float* values);

}  // namespace pagoda::kernels::ref
