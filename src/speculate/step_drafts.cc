#include "speculate/step_drafts.h"

#include <algorithm>

namespace pagoda::speculate {

void StepDrafts::begin(std::uint32_t rows) {
  rows_ = rows;
  tokens_taken_ = 0;
  offers_.clear();
  taken_.clear();
}

void StepDrafts::add(const Offer& offer) {
  offers_.push_back(offer);
  taken_.push_back(0);
}

// Among equals those that are less deep come first, so that no sequence takes all.
bool StepDrafts::is_later(const Next& a, const Next& b) {
  if (a.gain != b.gain) return a.gain < b.gain;
  if (a.place != b.place) return a.place > b.place;
  return a.offer > b.offer;
}

// The draft model's tokens cost time, so that it may be better to take none of them.
std::uint32_t StepDrafts::choose(const Terms& terms) {
  const bool has_model = std::any_of(offers_.begin(), offers_.end(),
                                     [](const Offer& offer) { return offer.by_model; });
  Best best = order_tokens(terms, true);
  if (has_model && terms.costs != nullptr) {
    order_with_model_.swap(order_);
    const Best without = order_tokens(terms, false);
    if (without.rate >= best.rate) {
      best = without;
    } else {
      order_.swap(order_with_model_);
    }
  }
  std::fill(taken_.begin(), taken_.end(), 0);
  for (std::uint32_t i = 0; i < best.tokens; ++i) ++taken_[order_[i]];
  return tokens_taken_ = best.tokens;
}

StepDrafts::Best StepDrafts::order_tokens(const Terms& terms, bool with_model) {
  heap_.clear();
  order_.clear();
  launch_rows_.clear();
  for (std::uint32_t i = 0; i < offers_.size(); ++i) {
    if (offers_[i].tokens == 0 || (offers_[i].by_model && !with_model)) continue;
    heap_.push_back({offers_[i].probability, 1, i});
  }
  std::make_heap(heap_.begin(), heap_.end(), is_later);
  Best best = {.rate = terms.costs == nullptr ? 0 : terms.costs->rate_to_beat(rows_)};
  double tokens = rows_;
  double finding = terms.delay;
  while (!heap_.empty() && order_.size() < terms.tokens_max) {
    std::pop_heap(heap_.begin(), heap_.end(), is_later);
    Next& next = heap_.back();
    const Offer& offer = offers_[next.offer];
    tokens += next.gain;
    if (offer.by_model) finding += model_seconds(terms, next.place);
    order_.push_back(next.offer);
    const auto count = static_cast<std::uint32_t>(order_.size());
    const double rate =
        terms.costs == nullptr ? count : tokens / (terms.costs->seconds(rows_ + count) + finding);
    if (rate > best.rate) best = {rate, count};
    if (next.place == offer.tokens) {
      heap_.pop_back();
      continue;
    }
    next.gain *= offer.probability;
    ++next.place;
    std::push_heap(heap_.begin(), heap_.end(), is_later);
  }
  return best;
}

// Returns what one more row costs in the launch that finds the tokens of this place.
double StepDrafts::model_seconds(const Terms& terms, std::uint32_t place) {
  if (terms.model_costs == nullptr) return 0;
  if (launch_rows_.size() < place) launch_rows_.resize(place, 0);
  const std::uint32_t rows = ++launch_rows_[place - 1];
  const double before = rows == 1 ? 0 : terms.model_costs->seconds(rows - 1);
  return terms.model_costs->seconds(rows) - before;
}

}  // namespace pagoda::speculate
