#include "events/replay_buffer.h"

#include <utility>

namespace pagoda::events {

void ReplayBuffer::push(std::uint64_t sequence, std::string payload) {
  bytes_ += payload.size();
  batches_.push_back({sequence, std::move(payload)});
  while (batches_.size() > batches_max_ || bytes_ > kBytesMax) {
    bytes_ -= batches_.front().payload.size();
    batches_.pop_front();
  }
}

}  // namespace pagoda::events
