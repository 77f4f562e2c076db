#include "kernels/routing.h"

#include <algorithm>
#include <limits>
#include <span>

#include "base/assert.h"
#include "kernels/exp.h"

namespace pagoda::kernels {
namespace {

constexpr float kLowestScore = -std::numeric_limits<float>::infinity();

// Fills `order` with the indices of the `count` highest values, highest first, the lowest index
// among equal ones.
void find_highest(std::span<const float> values, std::size_t count,
                  std::vector<std::uint32_t>& order) {
  order.clear();
  for (std::uint32_t i = 0; i < values.size(); ++i) {
    if (order.size() == count) {
      if (!(values[i] > values[order.back()])) continue;
      order.pop_back();
    }
    const auto place = std::find_if(order.begin(), order.end(), [&](std::uint32_t before) {
      return values[i] > values[before];
    });
    order.insert(place, i);
  }
}

// Writes the exponentials of x - max(x), divided by their sum.
void softmax(std::span<const float> x, float* out) {
  const float highest = *std::max_element(x.begin(), x.end());
  float sum = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    out[i] = exp_fixed(x[i] - highest);
    sum += out[i];
  }
  for (std::size_t i = 0; i < x.size(); ++i) out[i] /= sum;
}

void score(const Router& router, std::span<const float> logits, std::vector<float>& scores) {
  switch (router.score) {
    case RouterScore::kSoftmax:
      return softmax(logits, scores.data());
    case RouterScore::kSigmoid:
      for (std::size_t i = 0; i < logits.size(); ++i) {
        scores[i] = 1.0f / (1.0f + exp_fixed(-logits[i]));
      }
      return;
    case RouterScore::kSoftmaxOfChosen:
      scores.assign(logits.begin(), logits.end());
      return;
  }
}

// Makes experts outside the best groups the last to be chosen.
void keep_best_groups(const Router& router, RoutingScratch& scratch) {
  const std::size_t size = router.experts / router.groups;
  for (std::size_t group = 0; group < router.groups; ++group) {
    const std::span<const float> members(scratch.eligible.data() + group * size, size);
    find_highest(members, std::min<std::size_t>(router.group_best, size), scratch.order);
    float sum = 0;
    for (const std::uint32_t member : scratch.order) sum += members[member];
    scratch.group_scores[group] = sum;
  }
  find_highest(scratch.group_scores, router.groups_chosen, scratch.order);
  for (std::uint32_t group = 0; group < router.groups; ++group) {
    if (std::find(scratch.order.begin(), scratch.order.end(), group) != scratch.order.end()) {
      continue;
    }
    std::fill_n(scratch.eligible.begin() + static_cast<std::ptrdiff_t>(group * size), size,
                kLowestScore);
  }
}

void weigh(const Router& router, std::span<ChosenExpert> chosen) {
  if (router.score == RouterScore::kSoftmaxOfChosen) {
    const float highest = chosen.front().weight;  // the highest logit
    for (ChosenExpert& one : chosen) one.weight = exp_fixed(one.weight - highest);
  }
  if (router.is_normalised || router.score == RouterScore::kSoftmaxOfChosen) {
    float sum = 0;
    for (const ChosenExpert& one : chosen) sum += one.weight;
    sum = sum < kSmallestWeightSum ? kSmallestWeightSum : sum;
    for (ChosenExpert& one : chosen) one.weight /= sum;
  }
  for (ChosenExpert& one : chosen) one.weight *= router.weight_scale;
}

}  // namespace

void route(const Router& router, const float* logits, const float* bias, RoutingScratch& scratch,
           ChosenExpert* out) {
  ASSERT(router.chosen >= 1 && router.chosen <= router.experts, "experts are there to be chosen");
  score(router, {logits, router.experts}, scratch.scores);
  for (std::uint32_t i = 0; i < router.experts; ++i) {
    const float chosen_by = scratch.scores[i] + (bias == nullptr ? 0.0f : bias[i]);
    scratch.eligible[i] = chosen_by == chosen_by ? chosen_by : kLowestScore;
  }
  if (router.groups_chosen < router.groups) keep_best_groups(router, scratch);
  find_highest(scratch.eligible, router.chosen, scratch.order);
  for (std::size_t i = 0; i < router.chosen; ++i) {
    out[i] = {scratch.order[i], scratch.scores[scratch.order[i]]};
  }
  weigh(router, {out, router.chosen});
  // No expert is left out in silence: the token's result is not a number, either.
  const bool is_number = std::none_of(scratch.scores.begin(), scratch.scores.end(),
                                      [](float value) { return value != value; });
  for (std::uint32_t i = 0; i < router.chosen && !is_number; ++i) {
    out[i].weight = std::numeric_limits<float>::quiet_NaN();
  }
}

}  // namespace pagoda::kernels
