#include "kv/curve/hit_rate_curve.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "base/assert.h"

namespace pagoda::kv {

HitRateCurve::HitRateCurve(const HitRateCurveOptions& options)
    : options_(options),
      sampled_(options.sampled_max),
      heads_(options.sampled_max, kNone),
      cells_(options.hot_max),
      order_(options.sampled_max, options.hot_max) {
  ASSERT(options.sampled_max >= 8 && std::has_single_bit(options.hot_max),
         "an eighth of the sample is something, and cells are found by low bits");
  for (std::uint32_t at = options.sampled_max; at-- > 0;) {
    sampled_[at].chain = unused_;
    unused_ = at;
  }
}

void HitRateCurve::request(std::span<const std::uint64_t> identities) {
  for (const std::uint64_t identity : identities) look_up(identity);
  for (std::size_t i = identities.size(); i-- > 0;) use(identities[i]);
}

void HitRateCurve::look_up(std::uint64_t identity) {
  ++blocks_asked_;
  const std::uint32_t cell = cell_of(identity);
  if (cells_[cell].is_hot && cells_[cell].identity == identity) {
    ++hot_asked_;
    return hot_distances_.add(distance(hot_item(cell)), 1);
  }
  if (identity >= threshold_) return;
  const std::uint32_t at = find(identity);
  const double weight = 1 / sampling_rate();
  sampled_weight_ += weight;
  if (at != kNone) sampled_distances_.add(distance(at), weight);  // else no cache would have had it
}

std::uint64_t HitRateCurve::distance(RecencyOrder::Item item) const {
  const RecencyOrder::Counts newer = order_.newer(item);
  const double others = newer.hot + newer.sampled / sampling_rate();
  return 1 + static_cast<std::uint64_t>(std::llround(others));
}

void HitRateCurve::use(std::uint64_t identity) {
  if (vote(identity)) return order_.use(hot_item(cell_of(identity)));
  use_sampled(identity);
}

void HitRateCurve::renew(std::uint64_t identity) {
  const std::uint32_t cell = cell_of(identity);
  if (cells_[cell].is_hot && cells_[cell].identity == identity) return order_.use(hot_item(cell));
  use_sampled(identity);
}

void HitRateCurve::use_sampled(std::uint64_t identity) {
  if (identity >= threshold_) return;
  std::uint32_t at = find(identity);
  if (at == kNone) {
    const std::optional<std::uint32_t> fresh = insert(identity);
    if (!fresh) return;
    at = *fresh;
  }
  order_.use(at);
}

// True when the block is hot.
bool HitRateCurve::vote(std::uint64_t identity) {
  const std::uint32_t at = cell_of(identity);
  Cell& cell = cells_[at];
  if (cell.identity != identity) {
    if (cell.votes > 0) --cell.votes;
    if (cell.votes > 0) return false;
    if (cell.is_hot) cool(at);
    cell = {.identity = identity, .votes = 1, .is_hot = false};
    return false;
  }
  cell.votes = std::min(cell.votes + 1, kVotesMax);
  if (cell.is_hot || cell.votes < kVotesHot) return cell.is_hot;
  cell.is_hot = true;
  const std::uint32_t sampled = find(identity);
  if (sampled != kNone) erase(sampled);
  return true;
}

// A hot block is an ordinary one again: sampled where it stands, or forgotten.
void HitRateCurve::cool(std::uint32_t cell) {
  cells_[cell].is_hot = false;
  const std::optional<std::uint32_t> at = insert(cells_[cell].identity);
  if (at) {
    order_.replace(hot_item(cell), *at);
  } else {
    order_.forget(hot_item(cell));
  }
}

std::uint32_t HitRateCurve::find(std::uint64_t identity) const {
  std::uint32_t at = heads_[identity % heads_.size()];
  while (at != kNone && sampled_[at].identity() != identity) at = sampled_[at].chain;
  return at;
}

// Nothing when the identity is not, or no longer, below the threshold.
std::optional<std::uint32_t> HitRateCurve::insert(std::uint64_t identity) {
  while (unused_ == kNone && identity < threshold_) lower_threshold();
  if (identity >= threshold_) return std::nullopt;
  const std::uint32_t at = unused_;
  unused_ = sampled_[at].chain;
  std::uint32_t& head = heads_[identity % heads_.size()];
  sampled_[at] = {.identity_low = static_cast<std::uint32_t>(identity),
                  .identity_high = static_cast<std::uint32_t>(identity >> 32),
                  .chain = head};
  head = at;
  return at;
}

void HitRateCurve::erase(std::uint32_t at) {
  order_.forget(at);
  std::uint32_t* link = &heads_[sampled_[at].identity() % heads_.size()];
  while (*link != at) link = &sampled_[*link].chain;
  *link = sampled_[at].chain;
  sampled_[at].chain = unused_;
  unused_ = at;
}

// Called with a full sample: every record is in use.
void HitRateCurve::lower_threshold() {
  threshold_ -= threshold_ / 8;
  for (std::uint32_t at = 0; at < sampled_.size(); ++at) {
    if (sampled_[at].identity() >= threshold_) erase(at);
  }
}

double HitRateCurve::hit_rate(std::uint64_t blocks) const {
  if (blocks_asked_ == 0) return 0;
  double hits = hot_distances_.up_to(blocks);
  if (sampled_weight_ > 0) {
    const auto others_asked = static_cast<double>(blocks_asked_ - hot_asked_);
    hits += sampled_distances_.up_to(blocks) * (others_asked / sampled_weight_);
  }
  return hits / static_cast<double>(blocks_asked_);
}

double HitRateCurve::sampling_rate() const {
  return static_cast<double>(threshold_) / static_cast<double>(UINT64_MAX);
}

std::size_t HitRateCurve::bytes() const {
  return sizeof(*this) + sampled_.size() * sizeof(Sampled) + heads_.size() * sizeof(std::uint32_t) +
         cells_.size() * sizeof(Cell) + order_.bytes();
}

void HitRateCurve::check() const {
  order_.check();
  std::uint32_t unused = 0;
  for (std::uint32_t at = unused_; at != kNone; at = sampled_[at].chain) {
    ASSERT(!order_.contains(at), "V2: who is not sampled has no place in the order");
    ++unused;
  }
  std::uint32_t used = 0;
  for (std::uint32_t head = 0; head < heads_.size(); ++head) {
    for (std::uint32_t at = heads_[head]; at != kNone; at = sampled_[at].chain) {
      const std::uint64_t identity = sampled_[at].identity();
      ASSERT(identity % heads_.size() == head && identity < threshold_ && order_.contains(at),
             "V2: who is sampled is below the threshold, found, and in the order");
      const Cell& cell = cells_[cell_of(identity)];
      ASSERT(!cell.is_hot || cell.identity != identity, "V2: who is hot is not sampled");
      ++used;
    }
  }
  ASSERT(used + unused == sampled_.size(), "V2: a record is used or not");
  for (std::uint32_t cell = 0; cell < cells_.size(); ++cell) {
    ASSERT(cells_[cell].is_hot == order_.contains(hot_item(cell)),
           "V2: hot ones and they alone stand in the order for their cell");
  }
}

}  // namespace pagoda::kv
