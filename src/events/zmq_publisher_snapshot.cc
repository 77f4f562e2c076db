// Snapshots: the cache tells one into the ring, part by part, and those who asked get it, with
// the events between its parts, in the order of the ring.
#include <utility>

#include "events/zmq_publisher.h"

namespace pagoda::events {
namespace {

constexpr std::uint32_t kRestartsMax = 16;

}  // namespace

// One slice is asked for at a time: the next when this one was read.
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
  (void)part_->finish(0);  // of a beginning that was given up
  reply_to_served("snapshot-begin", sequence_ - 1, description());
}

void ZmqPublisher::send_part() {
  if (!begun_ || part_->empty()) return;
  reply_to_served("snapshot-part", sequence_ - 1, part_->finish(now_s()));
}

void ZmqPublisher::end_snapshot() {
  part_asked_ = false;
  if (!begun_) return;  // of one that was given up
  send_part();
  send_batch();  // the last that it holds
  reply_to_served("snapshot-end", sequence_ - 1, description());
  served_.clear();
  begun_ = false;
}

// Events were lost: what was sent so far leads nowhere. What is still told of it is not listened
// to, and it begins anew.
void ZmqPublisher::abandon_snapshot() {
  begun_ = false;
  part_asked_ = false;
  if (++restarts_ <= kRestartsMax) return;
  reply_to_served("snapshot-refused", sequence_ - 1, description());
  served_.clear();
}

// Who does not listen is given up.
void ZmqPublisher::reply_to_served(std::string_view kind, std::uint64_t sequence,
                                   std::string_view payload) {
  std::erase_if(served_,
                [&](const std::string& client) { return !reply(client, kind, sequence, payload); });
}

}  // namespace pagoda::events
