#include "kv/curve/recency_order.h"

#include <algorithm>

#include "base/assert.h"

namespace pagoda::kv {
namespace {

void change(RecencyOrder::Counts& counts, bool hot, int by) {
  std::uint16_t& count = hot ? counts.hot : counts.sampled;
  count = static_cast<std::uint16_t>(count + by);
}

void add_to(RecencyOrder::Counts& counts, const RecencyOrder::Counts& more) {
  change(counts, false, more.sampled);
  change(counts, true, more.hot);
}

}  // namespace

RecencyOrder::RecencyOrder(std::uint16_t sampled, std::uint16_t hot)
    : sampled_(sampled), position_of_(std::size_t{sampled} + hot, kNone) {
  item_at_.assign(2 * position_of_.size(), kNone);
  sums_.resize(item_at_.size() + 1);
}

void RecencyOrder::use(Item item) {
  forget(item);
  if (next_ == item_at_.size()) move_up();
  position_of_[item] = next_;
  item_at_[next_] = item;
  add(next_, item, 1);
  ++next_;
}

void RecencyOrder::forget(Item item) {
  if (!contains(item)) return;
  add(position_of_[item], item, -1);
  item_at_[position_of_[item]] = kNone;
  position_of_[item] = kNone;
}

void RecencyOrder::replace(Item from, Item to) {
  const std::uint32_t position = position_of_[from];
  forget(from);
  position_of_[to] = position;
  item_at_[position] = to;
  add(position, to, 1);
}

RecencyOrder::Counts RecencyOrder::newer(Item item) const {
  const Counts older = up_to(position_of_[item]);  // with the item itself
  return {.sampled = static_cast<std::uint16_t>(all_.sampled - older.sampled),
          .hot = static_cast<std::uint16_t>(all_.hot - older.hot)};
}

void RecencyOrder::add(std::uint32_t position, Item item, int by) {
  for (std::size_t at = position + 1; at < sums_.size(); at += at & -at) {
    change(sums_[at], is_hot(item), by);
  }
  change(all_, is_hot(item), by);
}

RecencyOrder::Counts RecencyOrder::up_to(std::uint32_t position) const {
  Counts counts;
  for (std::size_t at = position + 1; at > 0; at -= at & -at) add_to(counts, sums_[at]);
  return counts;
}

void RecencyOrder::move_up() {
  next_ = 0;
  std::fill(sums_.begin(), sums_.end(), Counts{});
  for (std::uint32_t& from : item_at_) {
    const Item item = from;
    from = kNone;
    if (item == kNone) continue;
    item_at_[next_] = item;
    position_of_[item] = next_;
    change(sums_[++next_], is_hot(item), 1);
  }
  for (std::size_t at = 1; at < sums_.size(); ++at) {
    const std::size_t above = at + (at & -at);
    if (above < sums_.size()) add_to(sums_[above], sums_[at]);
  }
}

std::size_t RecencyOrder::bytes() const {
  return sums_.size() * sizeof(Counts) +
         (item_at_.size() + position_of_.size()) * sizeof(std::uint32_t);
}

void RecencyOrder::check() const {
  Counts seen;
  for (std::uint32_t position = 0; position < item_at_.size(); ++position) {
    const Item item = item_at_[position];
    if (item != kNone) {
      ASSERT(position < next_ && position_of_[item] == position, "V1: an item knows its position");
      change(seen, is_hot(item), 1);
    }
    ASSERT(up_to(position) == seen, "V1: the counts of positions are true");
  }
  ASSERT(seen == all_, "V1: the count of items is true");
  const auto positioned = std::count_if(position_of_.begin(), position_of_.end(),
                                        [](std::uint32_t position) { return position != kNone; });
  ASSERT(positioned == seen.sampled + seen.hot, "V1: an item has one position");
}

}  // namespace pagoda::kv
