#include "kv/evict/arc.h"

#include <algorithm>

#include "base/assert.h"

namespace pagoda::kv {

Arc::Arc(std::uint32_t blocks) : records_(blocks), ghosts_once_(blocks), ghosts_again_(blocks) {}

void Arc::entered(BlockId block, const Use& /*use*/) {
  records_[block.value()] = {.is_here = true};
  ++once_;
}

void Arc::sealed(BlockId block, std::uint64_t identity) {
  Record& record = records_[block.value()];
  record.identity = identity;
  record.is_sealed = true;
  const std::uint32_t once = ghosts_once_.size();
  const std::uint32_t again = ghosts_again_.size();
  const auto blocks = static_cast<std::uint32_t>(records_.size());
  if (ghosts_once_.erase(identity)) {
    const std::uint32_t step = std::max(1u, again / once);
    once_target_ += std::min(blocks - once_target_, step);
  } else if (ghosts_again_.erase(identity)) {
    once_target_ -= std::min(once_target_, std::max(1u, once / again));
  } else {
    return trim_ghosts();
  }
  if (!record.is_again) move_to_again(record);
}

std::optional<BlockId> Arc::used(BlockId block, const Use& /*use*/) {
  Record& record = records_[block.value()];
  if (!record.is_again) move_to_again(record);
  return std::nullopt;
}

void Arc::move_to_again(Record& record) {
  record.is_again = true;
  --once_;
  ++again_;
}

void Arc::left(BlockId block) {
  Record& record = records_[block.value()];
  --(record.is_again ? again_ : once_);
  if (record.is_sealed) (record.is_again ? ghosts_again_ : ghosts_once_).insert(record.identity);
  record = {};
  trim_ghosts();
}

// The list of blocks found once and its ghosts are at most as many as the pool has blocks, and so
// are all ghosts together.
void Arc::trim_ghosts() {
  const std::uint64_t blocks = records_.size();
  while (ghosts_once_.size() > 0 && std::uint64_t{once_} + ghosts_once_.size() > blocks) {
    ghosts_once_.erase_oldest();
  }
  while (ghosts_again_.size() > 0 &&
         std::uint64_t{ghosts_once_.size()} + ghosts_again_.size() > blocks) {
    ghosts_again_.erase_oldest();
  }
}

EvictionOrder::QueuePosition Arc::position(BlockId block, const BlockStats& stats) const {
  return {.queue = records_[block.value()].is_again ? kAgain : kOnce,
          .score = -static_cast<std::int64_t>(stats.last_use)};
}

// Blocks that are free or being filled count as the first list's, which they are about to enter.
std::uint32_t Arc::first_queue() const {
  return records_.size() - again_ > once_target_ ? kOnce : kAgain;
}

void Arc::check() const {
  ghosts_once_.check();
  ghosts_again_.check();
  std::uint32_t once = 0;
  std::uint32_t again = 0;
  for (const Record& record : records_) {
    if (record.is_here) ++(record.is_again ? again : once);
  }
  ASSERT(once == once_ && again == again_, "F4: the sizes of both lists are true");
  ASSERT(once_target_ <= records_.size(), "F4: the target is at most the pool");
}

}  // namespace pagoda::kv
