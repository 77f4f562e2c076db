// Expert routing: which experts a token of a mixture goes to, and by what its results are
// multiplied. One implementation serves all kernel sets, so that they agree by construction.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace pagoda::kernels {

// A router's logits become scores by a softmax over all experts, by a sigmoid each, or, once
// experts are chosen by their logits, by a softmax over the chosen ones.
enum class RouterScore : std::uint8_t { kSoftmax, kSigmoid, kSoftmaxOfChosen };

struct Router {
  std::uint32_t experts = 0;
  std::uint32_t chosen = 0;  // of each token, 1 to `experts`
  RouterScore score = RouterScore::kSoftmax;
  bool is_normalised = false;  // weights are divided by their sum
  float weight_scale = 1;      // multiplies weights in the end
  // Experts stand in groups of one size, and only those of the best groups may be chosen: a group
  // counts by the sum of its `group_best` highest scores.
  std::uint32_t groups = 1;
  std::uint32_t groups_chosen = 1;
  std::uint32_t group_best = 2;
};

inline constexpr float kSmallestWeightSum = 1e-20f;  // keeps 0 / 0 out of normalised weights

struct ChosenExpert {
  std::uint32_t expert;
  float weight;
};

// Each thread that routes tokens needs a scratch of its own.
struct RoutingScratch {
  explicit RoutingScratch(const Router& router)
      : scores(router.experts), eligible(router.experts), group_scores(router.groups) {
    order.reserve(std::max(router.chosen, router.groups_chosen));
  }

  std::vector<float> scores;        // [experts]
  std::vector<float> eligible;      // [experts]: what experts are chosen by
  std::vector<float> group_scores;  // [groups]
  std::vector<std::uint32_t> order;
};

// Chooses the experts with the highest scores, the lowest number among equal ones, and writes them
// to out[router.chosen], highest first. `bias` [experts], or null, is added to scores where experts
// are chosen, not to weights. A score that is not a number counts as the lowest, and makes all
// weights NaN.
void route(const Router& router, const float* logits, const float* bias, RoutingScratch& scratch,
           ChosenExpert* out);

}  // namespace pagoda::kernels
