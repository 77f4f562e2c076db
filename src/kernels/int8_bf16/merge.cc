// Partial results of attention put together: what weighs them is computed for 16 queries at a time.
#include "kernels/int8_bf16/kernels.h"
#include "kernels/int8_bf16/simd.h"

namespace pagoda::kernels::PAGODA_ISA {
namespace {

// a = fma(b, take, a * keep)
void merge_values(float* a, const float* b, std::size_t count, float keep, float take) {
  std::size_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    store(a + i, fma(load(b + i), broadcast(take), load(a + i) * broadcast(keep)));
  }
  for (; i < count; ++i) a[i] = __builtin_fmaf(b[i], take, a[i] * keep);
}

}  // namespace

void merge_partials(float* left, const float* right, std::size_t group, std::size_t value_dim) {
  const std::size_t floats = 2 + value_dim;
  for (std::size_t first = 0; first < group; first += kLanes) {
    const std::size_t count = group - first < kLanes ? group - first : kLanes;
    alignas(64) float ours[kLanes] = {};  // their maxima, then what they are multiplied by
    alignas(64) float theirs[kLanes] = {};
    alignas(64) float maxima[kLanes];
    for (std::size_t g = 0; g < count; ++g) {
      ours[g] = left[(first + g) * floats];
      theirs[g] = right[(first + g) * floats];
    }
    const F32x16 maximum = max(load(theirs), load(ours));
    store(maxima, maximum);
    store(ours, exp_up_to_highest(load(ours) - maximum));
    store(theirs, exp_up_to_highest(load(theirs) - maximum));
    for (std::size_t g = 0; g < count; ++g) {
      float* const a = left + (first + g) * floats;
      a[0] = maxima[g];
      merge_values(a + 1, right + (first + g) * floats + 1, 1 + value_dim, ours[g], theirs[g]);
    }
  }
}

void normalise_partial(const float* partial, std::size_t group, std::size_t value_dim, float* out) {
  for (std::size_t g = 0; g < group; ++g, partial += 2 + value_dim, out += value_dim) {
    const float sum = partial[1];
    const float* const values = partial + 2;
    std::size_t d = 0;
    for (; d + kLanes <= value_dim; d += kLanes) store(out + d, load(values + d) / broadcast(sum));
    for (; d < value_dim; ++d) out[d] = values[d] / sum;
  }
}

}  // namespace pagoda::kernels::PAGODA_ISA
