#include "engine/logit_order.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
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

Result<BestLogit> find_best(const kernels::KernelSet& kernels, std::span<const float> logits,
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

void find_first(const kernels::KernelSet& kernels, std::span<const float> logits, std::size_t count,
                std::vector<std::uint32_t>& ids) {
  ids.clear();
  if (count == 0) return;
  const auto before = [logits](std::uint32_t a, std::uint32_t b) {
    return comes_before(logits, a, b);
  };
  // Once `count` tokens are held, later ones must be above the last of those to get in: an equal
  // one has a higher id. The bound is raised only now and then, which keeps this linear.
  float bound = -std::numeric_limits<float>::infinity();
  const std::size_t held_max = 2 * count + kLogitBlock;
  const auto keep_first = [&] {
    if (ids.size() <= count) return;
    const auto last = ids.begin() + static_cast<std::ptrdiff_t>(count - 1);
    std::nth_element(ids.begin(), last, ids.end(), before);
    bound = logits[*last];
    ids.resize(count);
  };
  for (std::size_t begin = 0; begin < logits.size(); begin += kLogitBlock) {
    const std::size_t end = std::min(begin + kLogitBlock, logits.size());
    if (!(kernels.finite_max(logits.data() + begin, end - begin) > bound)) continue;
    for (std::size_t id = begin; id < end; ++id) {
      if (logits[id] > bound) ids.push_back(static_cast<std::uint32_t>(id));
    }
    if (ids.size() >= held_max) keep_first();
  }
  keep_first();
}

std::size_t count_before(std::span<const float> logits, std::uint32_t id) {
  const float own = logits[id];
  std::size_t count = 0;
  for (const float logit : logits.first(id)) count += logit >= own ? 1 : 0;
  for (const float logit : logits.subspan(id)) count += logit > own ? 1 : 0;
  return count;
}

}  // namespace pagoda::engine
