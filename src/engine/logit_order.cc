#include "engine/logit_order.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

#include "base/assert.h"

namespace pagoda::engine {
namespace {

Error not_finite(std::span<const float> logits, std::uint64_t position) {
  const auto bad =
      std::find_if(logits.begin(), logits.end(), [](float x) { return !std::isfinite(x); });
  return {ErrorCode::kCorrupt,
          fmt::format("the model's logit of token {} at position {} is not finite",
                      bad - logits.begin(), position)};
}

}  // namespace

Result<BestLogit> find_argmax(const kernels::KernelSet& kernels, std::span<const float> logits,
                              std::uint64_t position) {
  ASSERT(!logits.empty(), "a row has logits");
  float best = -std::numeric_limits<float>::infinity();
  std::size_t best_block = 0;
  for (std::size_t begin = 0; begin < logits.size(); begin += kLogitBlock) {
    const std::size_t count = std::min(kLogitBlock, logits.size() - begin);
    const float highest = kernels.finite_max(logits.data() + begin, count);
    if (std::isnan(highest)) return not_finite(logits, position);
    if (highest > best) {
      best = highest;
      best_block = begin;
    }
  }
  std::size_t id = best_block;
  while (logits[id] != best) ++id;
  return BestLogit{best, static_cast<std::uint32_t>(id)};
}

void find_top_k(const kernels::KernelSet& kernels, std::span<const float> logits, std::size_t count,
                TopKTokens& first) {
  std::vector<std::uint32_t>& ids = first.ids;
  ids.clear();
  if (count == 0) return;
  std::vector<float>& bests = first.group_bests;
  bests.clear();
  for (std::size_t begin = 0; begin < logits.size(); begin += kLogitGroup) {
    const std::size_t size = std::min(kLogitGroup, logits.size() - begin);
    bests.push_back(kernels.finite_max(logits.data() + begin, size));
  }
  // Where `count` groups have a best of at least the bound, at least `count` tokens reach the
  // bound.
  float bound = std::numeric_limits<float>::lowest();
  if (count <= bests.size()) {
    first.ordered_bests.assign(bests.begin(), bests.end());
    const auto last = first.ordered_bests.begin() + static_cast<std::ptrdiff_t>(count - 1);
    std::nth_element(first.ordered_bests.begin(), last, first.ordered_bests.end(),
                     std::greater<>());
    bound = *last;
  }
  for (std::size_t group = 0; group < bests.size(); ++group) {
    if (bests[group] < bound) continue;
    const std::size_t end = std::min((group + 1) * kLogitGroup, logits.size());
    for (std::size_t id = group * kLogitGroup; id < end; ++id) {
      if (logits[id] >= bound) ids.push_back(static_cast<std::uint32_t>(id));
    }
  }
  if (ids.size() <= count) return;
  std::nth_element(
      ids.begin(), ids.begin() + static_cast<std::ptrdiff_t>(count - 1), ids.end(),
      [logits](std::uint32_t a, std::uint32_t b) { return comes_before(logits, a, b); });
  ids.resize(count);
}

std::size_t count_before(std::span<const float> logits, std::uint32_t id) {
  const float own = logits[id];
  std::size_t count = 0;
  for (const float logit : logits.first(id)) count += logit >= own ? 1 : 0;
  for (const float logit : logits.subspan(id)) count += logit > own ? 1 : 0;
  return count;
}

}  // namespace pagoda::engine
