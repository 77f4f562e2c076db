#include "speculate/acceptance.h"

namespace pagoda::speculate {
namespace {

// Usual probabilities, by method and class of match.
constexpr std::array<std::array<float, 4>, kMethodCount> kUsual = {{
    {0.80f, 0.80f, 0.85f, 0.90f},  // prediction
    {0.80f, 0.80f, 0.80f, 0.85f},  // tree
    {0.35f, 0.50f, 0.65f, 0.80f},  // suffix
    {0.35f, 0.50f, 0.65f, 0.80f},  // ngram
    {1.00f, 1.00f, 1.00f, 1.00f},  // constraint
    {0.70f, 0.70f, 0.70f, 0.70f},  // draft_model, whose classes are rules (drafter.h)
}};

constexpr float kWeight = 3.0f;  // tokens that what is usual counts as
constexpr float kDecay = 0.85f;  // of older tokens, with every draft
// Towards what is usual, with every draft that is not used. To try the draft model again costs the
// time of its launches, and what it must catch up with.
constexpr float kRecovery = 1.0f / 48;
constexpr float kModelRecovery = 1.0f / 512;

}  // namespace

Acceptance::Acceptance() {
  for (std::size_t i = 0; i < rates_.size(); ++i) {
    rates_[i] = {kUsual[i / kMatchClasses][i % kMatchClasses] * kWeight, kWeight};
  }
}

std::size_t Acceptance::rate_index(DraftMethod method, std::uint32_t match) {
  const std::size_t match_class = match < 4 ? 0 : match < 8 ? 1 : match < 16 ? 2 : 3;
  return static_cast<std::size_t>(method) * kMatchClasses + match_class;
}

double Acceptance::probability(DraftMethod method, std::uint32_t match) const {
  const Rate& rate = rates_[rate_index(method, match)];
  return double{rate.accepted} / double{rate.tried};
}

void Acceptance::note(DraftMethod method, std::uint32_t match, std::uint32_t drafted,
                      std::uint32_t accepted) {
  Rate& rate = rates_[rate_index(method, match)];
  const auto tokens = static_cast<float>(accepted);
  rate.accepted = rate.accepted * kDecay + tokens;
  rate.tried = rate.tried * kDecay + tokens + (accepted < drafted ? 1.0f : 0.0f);
}

void Acceptance::note_unused(DraftMethod method, std::uint32_t match) {
  const std::size_t index = rate_index(method, match);
  Rate& rate = rates_[index];
  const float usual = kUsual[index / kMatchClasses][index % kMatchClasses];
  const float recovery = method == DraftMethod::kDraftModel ? kModelRecovery : kRecovery;
  rate.accepted += (usual * rate.tried - rate.accepted) * recovery;
}

}  // namespace pagoda::speculate
