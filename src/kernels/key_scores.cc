#include <algorithm>
#include <cstring>

#include "base/half.h"
#include "kernels/ops.h"
#include "kv/memory/codec.h"

namespace pagoda::kernels {
namespace {

using kv::memory::Element;
using kv::memory::Row;

constexpr std::size_t kScoreLanes = 8;

float as_it_is(float value) { return value; }

// Like decode_row(), run by run.
template <class Bits, float (*convert)(Bits)>
void widen(const Row& row, std::size_t count, float* values) {
  const std::byte* at = row.data;
  for (std::size_t i = 0; i < count; i += row.run, at += row.run_step * sizeof(Bits)) {
    for (std::size_t k = 0; k < row.run; ++k) {
      Bits bits = 0;
      std::memcpy(&bits, at + k * row.step * sizeof(Bits), sizeof(Bits));
      values[i + k] = convert(bits);
    }
  }
}

void read_key(Element element, const Row& row, std::size_t count, float* values) {
  if (count % row.run != 0) return kv::memory::decode_row(element, row, count, values);
  switch (element) {
    case Element::kF32:
      return widen<float, as_it_is>(row, count, values);
    case Element::kF16:
      return widen<std::uint16_t, float_from_fp16>(row, count, values);
    case Element::kBF16:
      return widen<std::uint16_t, float_from_bf16>(row, count, values);
    default:
      return kv::memory::decode_row(element, row, count, values);
  }
}

float dot_in_lanes(const float* a, const float* b, std::size_t count) {
  float lanes[kScoreLanes] = {};
  std::size_t i = 0;
  for (; i + kScoreLanes <= count; i += kScoreLanes) {
    for (std::size_t lane = 0; lane < kScoreLanes; ++lane) lanes[lane] += a[i + lane] * b[i + lane];
  }
  for (; i < count; ++i) lanes[i % kScoreLanes] += a[i] * b[i];
  for (std::size_t width = kScoreLanes / 2; width > 0; width /= 2) {
    for (std::size_t lane = 0; lane < width; ++lane) lanes[lane] += lanes[lane + width];
  }
  return lanes[0];
}

}  // namespace

void observe_scores(const Attention& job, const AttentionRows& rows, std::uint32_t kv_head,
                    float* key, float* scores, std::size_t stride) {
  const kv::memory::PageLayout& layout = rows.view.layer.layout;
  const std::uint32_t group = job.heads / layout.kv_heads;
  const std::uint64_t keys = rows.first_position + rows.rows;
  for (std::uint64_t at = 0; at < keys; ++at) {
    read_key(layout.elements.keys, rows.view.key_row(kv_head, at), layout.key_dim, key);
    const auto first_row =
        static_cast<std::uint32_t>(at - std::min<std::uint64_t>(at, rows.first_position));
    for (std::uint32_t row = first_row; row < rows.rows; ++row) {
      for (std::uint32_t g = 0; g < group; ++g) {
        const std::size_t head = std::size_t{row} * job.heads + kv_head * group + g;
        const float* const query = rows.q + head * layout.key_dim;
        scores[(row * group + g) * stride + at] =
            dot_in_lanes(query, key, layout.key_dim) * job.softmax_scale();
      }
    }
  }
}

void observe_weights(const KernelSet& kernels, const Attention& job, std::size_t keys,
                     const float* sink, float* scores, std::uint32_t* weights,
                     std::uint64_t* sums) {
  if (job.cap > 0) kernels.soft_cap(scores, keys, job.scale, job.cap);
  std::size_t count = keys;
  if (sink != nullptr) scores[count++] = *sink;
  const float best = kernels.finite_max(scores, count);
  if (!(best == best)) return;  // the row's logits are no numbers either
  const std::uint64_t sum = kernels.sampling_weights({.x = scores,
                                                      .count = count,
                                                      .best = best,
                                                      .inverse_temperature = 1,
                                                      .min_p = 0,
                                                      .weights = weights});
  const double unit = kAttentionUnit / static_cast<double>(sum);
  for (std::size_t i = 0; i < keys; ++i) {
    sums[i] += static_cast<std::uint64_t>(static_cast<double>(weights[i]) * unit);
  }
}

}  // namespace pagoda::kernels
