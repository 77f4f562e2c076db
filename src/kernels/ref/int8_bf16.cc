#include "kernels/ref/int8_bf16.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "base/half.h"
#include "kernels/exp.h"
#include "kernels/ref/dequantise.h"
#include "kernels/ref/finite.h"
#include "kernels/ref/integer_gemm.h"
#include "kernels/ref/rows.h"
#include "kv/memory/codec.h"

namespace pagoda::kernels::ref {
namespace {

constexpr float kNothing = -std::numeric_limits<float>::infinity();
constexpr std::size_t kMatmulStep = 32;
constexpr std::size_t kDimensionStep = 32;
constexpr std::size_t kKeyStep = 16;
constexpr std::size_t kSumLanes = 16;
constexpr auto kWeightSteps = static_cast<float>(kValueWeightMax);

// A factor of a product: the nearest bf16.
float rounded(float x) { return float_from_bf16(bf16_from_float(without_subnormals(x))); }

// Terms from first to last, one after the other, in steps that start at multiples of `step`.
class EvenOddReduction {
 public:
  explicit EvenOddReduction(std::size_t step) : step_(step) {}

  void add(std::size_t term, float a, float b) {
    if (term / step_ != current_) {
      close_step();
      current_ = term / step_;
    }
    float& half = term % 2 == 0 ? even_ : odd_;
    half = without_subnormals(std::fma(without_subnormals(a), without_subnormals(b), half));
  }
  float total() {
    close_step();
    return total_;
  }

 private:
  void close_step() {
    total_ = without_subnormals(total_ + without_subnormals(even_ + odd_));
    even_ = odd_ = 0;
  }

  std::size_t step_;
  std::size_t current_ = 0;
  float even_ = 0;
  float odd_ = 0;
  float total_ = 0;
};

// Keys [begin, end) of the split that a token at `position` sees.
struct KeyRange {
  std::uint64_t begin;
  std::uint64_t end;
};
KeyRange visible_keys(const Attention& job, std::uint64_t position, std::uint64_t split) {
  return {std::max(first_visible_key(job, position), split * kInt8Bf16SplitKeys),
          std::min(visible_keys_end(job, position), (split + 1) * kInt8Bf16SplitKeys)};
}

std::vector<float> decoded(kv::memory::Element element, kv::memory::Row row, std::size_t count) {
  std::vector<float> values(count);
  kv::memory::decode_row(element, row, count, values.data());
  for (float& value : values) value = rounded(value);
  return values;
}

// A row of integers as it stands in the cache: codes (of kInt4 their levels), and what those of
// each group are multiplied by.
struct CodeRow {
  std::vector<std::int64_t> codes;
  std::vector<float> scales;
  std::size_t group = 0;  // codes that share a scale
};
CodeRow codes_of(kv::memory::Element element, kv::memory::Row row, std::size_t count) {
  CodeRow result;
  const std::size_t groups = scale_groups(element, count);
  result.group = groups == 1 ? count : kv::memory::kScaleGroup;
  for (std::size_t group = 0; group < groups; ++group) {
    std::uint16_t scale = 0;
    std::memcpy(&scale, row.scale + group * row.scale_step, sizeof(scale));
    result.scales.push_back(float_from_fp16(scale));
  }
  // Codes are what a row with scales of 1 decodes to.
  const std::uint16_t one = fp16_from_float(1.0f);
  std::array<std::byte, sizeof(one)> unit_scale;
  std::memcpy(unit_scale.data(), &one, sizeof(one));
  row.scale = unit_scale.data();
  row.scale_step = 0;
  std::vector<float> values(count);
  kv::memory::decode_row(element, row, count, values.data());
  for (const float value : values) result.codes.push_back(static_cast<std::int64_t>(value));
  return result;
}

// A query against keys of the cache.
class KeyScorer {
 public:
  KeyScorer(kv::memory::Element element, const float* q, std::size_t dimensions)
      : element_(element), q_(q), dimensions_(dimensions) {
    if (!is_integer(element)) return;
    activations_.resize(activation_bytes(Numerics::kInt8Bf16, dimensions, 1));
    to_limbs(q, dimensions, activations_.data(), 0);
    limbs_ = limbs_of(activations_.data(), dimensions, 0);
  }

  // Capped where the model does that, and else not scaled.
  float score(const Attention& job, kv::memory::Row row) const {
    float score = dot(row);
    if (job.cap > 0) soft_cap(&score, 1, job.scale, job.cap);
    return score;
  }

 private:
  float dot(kv::memory::Row row) const {
    if (is_integer(element_)) {
      const CodeRow key = codes_of(element_, row, dimensions_);
      float score = 0;
      for (std::size_t first = 0; first < dimensions_; first += key.group) {
        std::int64_t sum = 0;
        for (std::size_t d = first; d < std::min(first + key.group, dimensions_); ++d) {
          sum += limbs_.integers[d] * key.codes[d];
        }
        const float scale = key.scales[first / key.group];
        score = without_subnormals(std::fma(static_cast<float>(sum), scale, score));
      }
      return without_subnormals(score * limbs_.scale);
    }
    const std::vector<float> k = decoded(element_, row, dimensions_);
    EvenOddReduction sum(kDimensionStep);
    for (std::size_t d = 0; d < dimensions_; ++d) sum.add(d, rounded(q_[d]), k[d]);
    return sum.total();
  }

  kv::memory::Element element_;
  const float* q_;
  std::size_t dimensions_;
  std::vector<std::byte> activations_;
  IntegerActivations limbs_;
};

// Weights [keys] of keys from keys.begin on: the weighted values of a split.
void weigh_values(const kv::memory::SequenceView& view, std::uint32_t kv_head, KeyRange keys,
                  const std::vector<float>& weights, float* out) {
  const kv::memory::PageLayout& layout = view.layer.layout;
  std::vector<EvenOddReduction> sums(layout.value_dim, EvenOddReduction(kKeyStep));
  for (std::uint64_t key = keys.begin; key < keys.end; ++key) {
    const std::vector<float> v =
        decoded(layout.elements.values, view.value_row(kv_head, key), layout.value_dim);
    const float weight = rounded(weights[key - keys.begin]);
    for (std::uint32_t d = 0; d < layout.value_dim; ++d) sums[d].add(key, weight, v[d]);
  }
  for (std::uint32_t d = 0; d < layout.value_dim; ++d) out[d] = sums[d].total();
}

// The same of values that are integers: columns that share a scale.
void weigh_group(const std::vector<CodeRow>& rows, const std::vector<float>& weights,
                 std::size_t group, float* out) {
  std::vector<float> scaled;
  float largest = 0;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const float scale = std::isnan(rows[i].scales[group]) ? 0.0f : rows[i].scales[group];
    scaled.push_back(without_subnormals(weights[i] * scale));
    largest = std::max(largest, scaled.back());
  }
  const bool usable = largest >= kValueWeightSmallest;
  const float inverse = usable ? kWeightSteps / largest : 0.0f;
  const std::size_t first = group * rows[0].group;
  const std::size_t last = std::min(first + rows[0].group, rows[0].codes.size());
  std::vector<std::int64_t> sums(last - first);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    // Where a weight is NaN, so is the sum of weights, and the result with it.
    const float steps = std::isnan(scaled[i]) ? 0.0f : std::nearbyint(scaled[i] * inverse);
    const auto n = static_cast<std::int64_t>(steps);
    for (std::size_t d = first; d < last; ++d) sums[d - first] += n * rows[i].codes[d];
  }
  const float step = usable ? largest / kWeightSteps : 0.0f;
  for (std::size_t d = first; d < last; ++d) out[d] = static_cast<float>(sums[d - first]) * step;
}

void weigh_integers(const kv::memory::SequenceView& view, std::uint32_t kv_head, KeyRange keys,
                    const std::vector<float>& weights, float* out) {
  const kv::memory::PageLayout& layout = view.layer.layout;
  std::vector<CodeRow> rows;
  for (std::uint64_t key = keys.begin; key < keys.end; ++key) {
    rows.push_back(
        codes_of(layout.elements.values, view.value_row(kv_head, key), layout.value_dim));
  }
  for (std::size_t group = 0; group < rows[0].scales.size(); ++group) {
    weigh_group(rows, weights, group, out);
  }
}

// One query head over the keys it sees.
void attend_one(const Attention& job, const kv::memory::SequenceView& view, std::uint32_t kv_head,
                const float* q, KeyRange keys, float* partial) {
  const kv::memory::PageLayout& layout = view.layer.layout;
  const KeyScorer scorer(layout.elements.keys, q, layout.key_dim);
  std::vector<float> scores;
  float highest = kNothing;
  for (std::uint64_t key = keys.begin; key < keys.end; ++key) {
    scores.push_back(scorer.score(job, view.key_row(kv_head, key)));
    highest = std::max(highest, scores.back());
  }
  const float scale = job.softmax_scale();
  const float power = scale * exp_steps::kLog2E;
  // Where all scores are too low for a float nothing weighs anything.
  const float shift = highest == kNothing ? 0.0f : -(highest * power);
  std::array<float, kSumLanes> lanes = {};
  std::vector<float> weights;
  for (std::uint64_t key = keys.begin; key < keys.end; ++key) {
    weights.push_back(power_fixed(std::fma(scores[key - keys.begin], power, shift)));
    lanes[key % kSumLanes] += weights.back();
  }
  for (std::size_t width = kSumLanes / 2; width > 0; width /= 2) {
    for (std::size_t i = 0; i < width; ++i) lanes[i] += lanes[i + width];
  }
  partial[0] = highest * scale;
  partial[1] = lanes[0];
  const auto weigh = is_integer(layout.elements.values) ? weigh_integers : weigh_values;
  weigh(view, kv_head, keys, weights, partial + 2);
}

}  // namespace

float without_subnormals(float x) {
  return std::fabs(x) < std::numeric_limits<float>::min() ? std::copysign(0.0f, x) : x;
}

void pack_activations_int8_bf16(const float* x, std::size_t columns, std::byte* activations,
                                std::size_t row) {
  std::byte* const halves = activations + ActivationLayout(columns).halves(row);
  for (std::size_t k = 0; k < columns; ++k) {
    const std::uint16_t bits = bf16_from_float(without_subnormals(x[k]));
    std::memcpy(halves + 2 * k, &bits, 2);
  }
  to_limbs(x, columns, activations, row);
}

void matmul_int8_bf16(const Matmul& job, std::size_t begin, std::size_t end, std::byte*) {
  if (multiplied_as_integers(job.weight)) return matmul_integers(job, begin, end);
  const std::size_t columns = job.weight.columns;
  const ActivationLayout layout(columns);
  std::vector<float> weights(columns);
  for (std::size_t n = begin; n < end; ++n) {
    unpack_row(job.weight, n, weights.data());
    for (float& weight : weights) weight = rounded(weight);
    for (std::size_t r = 0; r < job.rows; ++r) {
      EvenOddReduction sum(kMatmulStep);
      for (std::size_t k = 0; k < columns; ++k) {
        std::uint16_t bits = 0;
        std::memcpy(&bits, job.x + layout.halves(r) + 2 * k, 2);
        sum.add(k, float_from_bf16(bits), weights[k]);
      }
      float& y = job.y[r * job.y_stride + n];
      y = job.accumulate ? without_subnormals(without_subnormals(y) + sum.total()) : sum.total();
    }
  }
}

bool store_kv_int8_bf16(const kv::memory::SequenceView& view, std::uint64_t position,
                        const float* keys, const float* values) {
  const kv::memory::PageLayout& layout = view.layer.layout;
  const auto store = [&](kv::memory::Element element, const float* from, std::size_t count,
                         kv::memory::Row to) {
    std::vector<float> row(from, from + count);
    std::transform(row.begin(), row.end(), row.begin(), without_subnormals);
    kv::memory::encode_row(element, row.data(), count, to);
  };
  return store_finite_heads(
      Numerics::kInt8Bf16, view, position, keys, values,
      [&](std::uint32_t head, const float* key, const float* value) {
        store(layout.elements.keys, key, layout.key_dim, view.key_row(head, position));
        if (layout.values_in_keys) return;
        store(layout.elements.values, value, layout.value_dim, view.value_row(head, position));
      });
}

void attend_split_int8_bf16(const Attention& job, const AttentionRows& rows, std::uint32_t kv_head,
                            std::uint64_t split, std::byte*, float* partials) {
  const kv::memory::PageLayout& layout = rows.view.layer.layout;
  const std::uint32_t group = job.heads / layout.kv_heads;
  for (std::uint32_t row = 0; row < rows.rows; ++row) {
    const KeyRange keys = visible_keys(job, rows.first_position + row, split);
    if (keys.begin >= keys.end) continue;
    for (std::uint32_t g = 0; g < group; ++g) {
      const std::size_t head = row * job.heads + kv_head * group + g;
      attend_one(job, rows.view, kv_head, rows.q + head * layout.key_dim, keys,
                 partials + (row * group + g) * (2 + layout.value_dim));
    }
  }
}

void score_split_int8_bf16(const Attention& job, const AttentionRows& rows, std::uint32_t kv_head,
                           std::uint64_t split, std::byte*, ScoreRows scores) {
  const kv::memory::PageLayout& layout = rows.view.layer.layout;
  const std::uint32_t group = job.heads / layout.kv_heads;
  for (std::uint32_t row = 0; row < rows.rows; ++row) {
    const KeyRange keys = visible_keys(job, rows.first_position + row, split);
    for (std::uint32_t g = 0; g < group; ++g) {
      const std::size_t head = row * job.heads + kv_head * group + g;
      const KeyScorer scorer(layout.elements.keys, rows.q + head * layout.key_dim, layout.key_dim);
      float* const out = scores.data + (row * group + g) * scores.stride;
      for (std::uint64_t key = keys.begin; key < keys.end; ++key) {
        const float score = scorer.score(job, rows.view.key_row(kv_head, key));
        out[key] = without_subnormals(score * job.softmax_scale());
      }
    }
  }
}

}  // namespace pagoda::kernels::ref
