// Snapshots: the cache writes one into the ring, part by part, and the clients that asked get it,
// with the events between its parts, in the order of the ring.
#include <utility>

#include "events/zmq_publisher.h"

namespace pagoda::events {
namespace {

constexpr std::uint32_t kRestartsMax = 16;

}  // namespace

// One part is asked for at a time: the next when this one was read.
void ZmqPublisher::continue_snapshot() {
  if (served_.empty()) {
    served_ = std::exchange(waiting_, {});
    begun_ = false;
    restarts_ = 0;
  }
  if (served_.empty() || part_asked_) return;
  part_asked_ = true;
  ask_(!begun_);
}

void ZmqPublisher::begin_snapshot() {
  begun_ = true;
  (void)part_->finish(0);  // drops events of a snapshot that was abandoned
  reply_to_served("snapshot-begin", sequence_ - 1, description());
}

void ZmqPublisher::send_part() {
  if (!begun_ || part_->empty()) return;
  reply_to_served("snapshot-part", sequence_ - 1, part_->finish(now_s()));
}

void ZmqPublisher::end_snapshot() {
  part_asked_ = false;
  if (!begun_) return;  // the end of a snapshot that was abandoned
  send_part();
  send_batch();  // the last batch of the snapshot
  reply_to_served("snapshot-end", sequence_ - 1, description());
  served_.clear();
  begun_ = false;
}

// Events were lost, so that the batches sent so far lead nowhere. The rest of the running snapshot
// is skipped, and the snapshot begins anew.
void ZmqPublisher::abandon_snapshot() {
  begun_ = false;
  part_asked_ = false;
  if (++restarts_ <= kRestartsMax) return;
  reply_to_served("snapshot-refused", sequence_ - 1, description());
  served_.clear();
}

// A client that cannot be reached is dropped.
void ZmqPublisher::reply_to_served(std::string_view kind, std::uint64_t sequence,
                                   std::string_view payload) {
  std::erase_if(served_,
                [&](const std::string& client) { return !reply(client, kind, sequence, payload); });
}

}  // namespace pagoda::events
