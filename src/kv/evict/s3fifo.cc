#include "kv/evict/s3fifo.h"

#include <algorithm>

#include "base/assert.h"

namespace pagoda::kv {

S3Fifo::S3Fifo(std::uint32_t blocks)
    : records_(blocks), ghosts_(blocks - blocks / 10), small_max_(std::max(blocks / 10, 1u)) {}

void S3Fifo::entered(BlockId block, const Use& /*use*/) {
  records_[block.value()] = {.arrival = ++arrivals_, .is_here = true};
  ++small_;
}

void S3Fifo::sealed(BlockId block, std::uint64_t identity) {
  Record& record = records_[block.value()];
  record.identity = identity;
  record.is_sealed = true;
  if (ghosts_.erase(identity) && !record.is_main) move_to_main(record);
}

std::optional<BlockId> S3Fifo::used(BlockId block, const Use& /*use*/) {
  Record& record = records_[block.value()];
  record.uses = std::min<std::uint8_t>(record.uses + 1, kUsesMax);
  return std::nullopt;
}

void S3Fifo::left(BlockId block) {
  Record& record = records_[block.value()];
  if (record.is_sealed && !record.is_main) ghosts_.insert(record.identity);
  --(record.is_main ? main_ : small_);
  record = {};
}

EvictionOrder::QueuePosition S3Fifo::position(BlockId block, const BlockStats& /*stats*/) const {
  const Record& record = records_[block.value()];
  return {.queue = record.is_main ? kMain : kSmall,
          .score = -static_cast<std::int64_t>(record.arrival)};
}

// Blocks that are free or being filled count as the small queue's, which they are about to enter.
std::uint32_t S3Fifo::first_queue() const {
  return main_ > records_.size() - small_max_ ? kMain : kSmall;
}

bool S3Fifo::spares(BlockId block) const {
  const Record& record = records_[block.value()];
  return record.uses >= (record.is_main ? 1 : kUsesToStay);
}

void S3Fifo::spare(BlockId block) {
  Record& record = records_[block.value()];
  if (record.is_main) {
    --record.uses;
    record.arrival = ++arrivals_;
    return;
  }
  record.uses = 0;
  move_to_main(record);
}

void S3Fifo::move_to_main(Record& record) {
  record.is_main = true;
  record.arrival = ++arrivals_;
  --small_;
  ++main_;
}

void S3Fifo::check() const {
  ghosts_.check();
  std::uint32_t in_small = 0;
  std::uint32_t in_main = 0;
  for (const Record& record : records_) {
    if (record.is_here) ++(record.is_main ? in_main : in_small);
    ASSERT(record.uses <= kUsesMax, "F3: uses are counted up to three");
  }
  ASSERT(in_small == small_ && in_main == main_, "F3: the sizes of both queues are true");
}

}  // namespace pagoda::kv
