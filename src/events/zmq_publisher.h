// Publishes over ZeroMQ: batches on a PUB socket, replays and snapshots on a ROUTER socket.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "base/event_fd.h"
#include "events/batch_encoder.h"
#include "events/publisher.h"
#include "events/replay_buffer.h"
#include "events/zmq_socket.h"

namespace pagoda::events {

class ZmqPublisher final : public Publisher {
 public:
  static Result<std::unique_ptr<ZmqPublisher>> bind(const EventsConfig& config,
                                                    kv::EventRing& ring);
  ~ZmqPublisher() override;

  void start(const std::vector<kv::memory::AttentionSpec>& groups, AskForPart ask) override;
  void stop() override;
  void wake() override { wakeup_.notify(); }

  const std::string& incarnation() const override { return incarnation_; }
  const std::string& endpoint() const override { return events_.endpoint(); }
  const std::string& replay_endpoint() const override { return replies_.endpoint(); }

 private:
  ZmqPublisher(const EventsConfig& config, kv::EventRing& ring);

  void run();
  void wait();

  // Events. Returns false when all events that were handed over are read.
  bool read_ring();
  void take(const kv::CacheEvent& event, std::span<const TokenId> tokens);
  void send_batch();

  // Replies
  void answer_requests();
  void answer(const std::vector<std::string>& request);
  void replay(std::string_view client, std::uint64_t from);
  bool reply(std::string_view client, std::string_view kind, std::uint64_t sequence,
             std::string_view payload) {
    return replies_.send({client, "", kind, sequence_frame(sequence), payload});
  }
  static std::string sequence_frame(std::uint64_t sequence);
  static double now_s();  // seconds since 1970
  std::string description() const;

  // Snapshots run one at a time, each for all clients that asked before it began.
  void continue_snapshot();
  void begin_snapshot();
  void send_part();
  void end_snapshot();
  void abandon_snapshot();
  void reply_to_served(std::string_view kind, std::uint64_t sequence, std::string_view payload);

  EventsConfig config_;
  kv::EventRing& ring_;
  std::string incarnation_;
  ZmqContext context_;
  ZmqSocket events_;
  ZmqSocket replies_;
  EventFd wakeup_;
  AskForPart ask_;

  std::uint64_t sequence_ = 0;  // number of the next batch
  std::optional<BatchEncoder> batch_;
  ReplayBuffer buffer_;

  std::vector<std::string> waiting_;  // clients whose snapshot has not begun
  std::vector<std::string> served_;   // clients whose snapshot runs
  std::optional<BatchEncoder> part_;  // the running snapshot, from its first event on, in order
  bool begun_ = false;                // the snapshot's first event was read
  bool part_asked_ = false;
  std::uint32_t restarts_ = 0;

  std::atomic<bool> stopping_{false};
  std::thread thread_;
};

}  // namespace pagoda::events
