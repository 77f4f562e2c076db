// Runs the publisher between a ring and real sockets. Its messages to subscribers that keep up are
// tested against the server (tests/server/wire/events_test.py); these tests cover what seldom
// happens.
#include <gtest/gtest.h>
#include <zmq.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "events/publisher.h"

namespace pagoda::events {
namespace {

using Json = nlohmann::json;

struct Message {
  std::string kind;  // kind of message, or the topic
  std::uint64_t sequence;
  Json payload;
};

// Client is a client's socket; frames before the kind are left out.
class Client {
 public:
  Client(int type, const std::string& endpoint)
      : context_(zmq_ctx_new()), socket_(zmq_socket(context_, type)) {
    const int patience_ms = 10'000;
    const int none = 0;
    zmq_setsockopt(socket_, ZMQ_RCVTIMEO, &patience_ms, sizeof patience_ms);
    zmq_setsockopt(socket_, ZMQ_LINGER, &none, sizeof none);
    if (type == ZMQ_SUB) zmq_setsockopt(socket_, ZMQ_SUBSCRIBE, "", 0);
    EXPECT_EQ(zmq_connect(socket_, endpoint.c_str()), 0);
  }
  ~Client() {
    zmq_close(socket_);
    zmq_ctx_term(context_);
  }

  void ask(std::string_view request) {
    zmq_send(socket_, "", 0, ZMQ_SNDMORE);
    zmq_send(socket_, request.data(), request.size(), 0);
  }

  Message receive() {
    std::vector<std::string> frames;
    int more = 1;
    std::size_t bytes = sizeof more;
    while (more != 0) {
      zmq_msg_t frame;
      zmq_msg_init(&frame);
      if (zmq_msg_recv(&frame, socket_, 0) < 0) return {"nothing came", UINT64_MAX, {}};
      frames.emplace_back(static_cast<const char*>(zmq_msg_data(&frame)), zmq_msg_size(&frame));
      zmq_msg_close(&frame);
      zmq_getsockopt(socket_, ZMQ_RCVMORE, &more, &bytes);
    }
    const std::size_t first = frames.size() - 3;
    Message message = {frames[first], 0, {}};
    for (const char byte : frames[first + 1]) {
      message.sequence = message.sequence << 8 | static_cast<unsigned char>(byte);
    }
    if (!frames[first + 2].empty()) message.payload = Json::from_msgpack(frames[first + 2]);
    return message;
  }

 private:
  void* context_;
  void* socket_;
};

kv::CacheEvent stored(std::uint8_t number) {
  kv::CacheEvent event = {.is_public = false, .parent = kv::root_hash()};
  event.hash.digest.back() = std::byte{number};
  return event;
}

// The test's thread owns the ring.
class PublisherTest : public testing::Test {
 protected:
  void start(std::uint64_t ring_events) {
    ring_.emplace(ring_events, 4);
    EventsConfig config;
    config.endpoint = "tcp://127.0.0.1:*";
    config.replay_endpoint = "tcp://127.0.0.1:*";
    publisher_ = std::move(Publisher::open(config, *ring_).value());
    publisher_->start({{}}, [this](bool first) { ++(first ? firsts_ : nexts_); });
  }
  void publish() {
    if (ring_->publish()) publisher_->wake();
  }
  template <class Condition>
  static void wait_until(Condition&& condition) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(10);
    while (!condition() && std::chrono::steady_clock::now() < end) std::this_thread::yield();
    ASSERT_TRUE(condition()) << "it did not come to be";
  }
  void wait_for_asks(std::uint64_t firsts, std::uint64_t nexts) {
    wait_until([&] { return firsts_ >= firsts && nexts_ >= nexts; });
  }
  std::vector<Message> replay(Client& client) {
    client.ask(std::string(8, '\0'));
    std::vector<Message> batches;
    for (Message m = client.receive(); m.sequence != UINT64_MAX; m = client.receive()) {
      batches.push_back(m);
    }
    return batches;
  }

  std::optional<kv::EventRing> ring_;
  std::unique_ptr<Publisher> publisher_;
  std::atomic<std::uint64_t> firsts_{0};
  std::atomic<std::uint64_t> nexts_{0};
};

TEST_F(PublisherTest, ALossIsAHoleInTheNumbersOfBatches) {
  start(4);
  for (std::uint8_t i = 0; i < 9; ++i) ring_->push(stored(i));
  publish();
  // Waits until the publisher has read the loss.
  wait_until([&] { return ring_->room() == 4; });
  ring_->push(stored(100));
  publish();
  Client client(ZMQ_DEALER, publisher_->replay_endpoint());
  std::vector<std::uint64_t> sequences;
  wait_until([&] {
    sequences.clear();
    for (const Message& batch : replay(client)) sequences.push_back(batch.sequence);
    return sequences.size() == 3;
  });
  EXPECT_EQ(sequences, (std::vector<std::uint64_t>{0, 1, 3}));
}

TEST_F(PublisherTest, ASnapshotBeginsAnewWhenEventsWereLost) {
  start(4);
  Client client(ZMQ_DEALER, publisher_->replay_endpoint());
  client.ask("get-snapshot");
  wait_for_asks(1, 0);
  ring_->push({.kind = kv::CacheEventKind::kSnapshotBegin});
  ring_->push({.kind = kv::CacheEventKind::kSnapshotPause});
  publish();
  EXPECT_EQ(client.receive().kind, "snapshot-begin");
  wait_for_asks(1, 1);
  for (std::uint8_t i = 0; i < 9; ++i) ring_->push(stored(i));
  ring_->push({.kind = kv::CacheEventKind::kSnapshotEnd});  // the end of the old snapshot, lost
                                                            // like the other events
  publish();
  wait_for_asks(2, 1);
  ring_->push({.kind = kv::CacheEventKind::kSnapshotBegin});
  kv::CacheEvent present = stored(7);
  present.kind = kv::CacheEventKind::kPresent;
  ring_->push(present);
  ring_->push({.kind = kv::CacheEventKind::kSnapshotEnd});
  publish();
  Message message = client.receive();
  while (message.kind == "snapshot-part") message = client.receive();  // of the first
  ASSERT_EQ(message.kind, "snapshot-begin");
  message = client.receive();
  ASSERT_EQ(message.kind, "snapshot-part");
  EXPECT_EQ(message.payload[1][0]["block_hashes"], Json::parse("[7]"));
  EXPECT_EQ(client.receive().kind, "snapshot-end");
}

TEST_F(PublisherTest, WhatChangesDuringASnapshotIsInItAndInTheBatchesBeforeItsEnd) {
  start(16);
  Client client(ZMQ_DEALER, publisher_->replay_endpoint());
  client.ask("get-snapshot");
  wait_for_asks(1, 0);
  ring_->push({.kind = kv::CacheEventKind::kSnapshotBegin});
  ring_->push(stored(1));
  ring_->push({.kind = kv::CacheEventKind::kSnapshotEnd});
  ring_->push(stored(2));  // an event after the snapshot
  publish();
  EXPECT_EQ(client.receive().kind, "snapshot-begin");
  const Message part = client.receive();
  ASSERT_EQ(part.kind, "snapshot-part");
  EXPECT_EQ(part.payload[1].size(), 1u);
  const Message end = client.receive();
  ASSERT_EQ(end.kind, "snapshot-end");
  EXPECT_EQ(end.payload["incarnation"], publisher_->incarnation());
  const std::vector<Message> batches = replay(client);
  ASSERT_EQ(batches.size(), 3u);
  EXPECT_EQ(end.sequence, 1u);
  EXPECT_EQ(batches[1].payload[1][0]["block_hashes"], Json::parse("[1]"));
  EXPECT_EQ(batches[2].payload[1][0]["block_hashes"], Json::parse("[2]"));
}

TEST_F(PublisherTest, AClientThatGoesAwayDoesNotHinderTheNext) {
  start(16);
  {
    Client gone(ZMQ_DEALER, publisher_->replay_endpoint());
    gone.ask("get-snapshot");
    wait_for_asks(1, 0);
  }
  Client client(ZMQ_DEALER, publisher_->replay_endpoint());
  client.ask("get-snapshot");
  ring_->push({.kind = kv::CacheEventKind::kSnapshotBegin});
  // The snapshot has no end, until the publisher notices that nobody listens.
  kv::CacheEvent present = stored(1);
  present.kind = kv::CacheEventKind::kPresent;
  for (std::uint64_t slices = 0; firsts_ < 2 && slices < 50; ++slices) {
    ring_->push(present);
    ring_->push({.kind = kv::CacheEventKind::kSnapshotPause});
    publish();
    wait_until([&] { return firsts_ >= 2 || nexts_ > slices; });
  }
  ring_->push({.kind = kv::CacheEventKind::kSnapshotBegin});
  ring_->push({.kind = kv::CacheEventKind::kSnapshotEnd});
  publish();
  EXPECT_EQ(client.receive().kind, "snapshot-begin");
  EXPECT_EQ(client.receive().kind, "snapshot-end");
}

TEST_F(PublisherTest, TheEndSendsWhatWasHandedOver) {
  start(16);
  Client client(ZMQ_SUB, publisher_->endpoint());
  std::this_thread::sleep_for(std::chrono::milliseconds(300));  // the client is known then
  ring_->push(stored(1));
  ring_->publish();  // the publisher is not woken
  publisher_->stop();
  // The publisher's first message, that all was cleared, may have come after the client was known.
  Message message = client.receive();
  if (message.sequence == 0) message = client.receive();
  EXPECT_EQ(message.sequence, 1u);
  EXPECT_EQ(message.payload[1][0]["block_hashes"], Json::parse("[1]"));
}

TEST_F(PublisherTest, ATakenEndpointIsAnErrorThatNamesIt) {
  start(16);
  EventsConfig config;
  config.endpoint = "tcp://127.0.0.1:*";
  config.replay_endpoint = publisher_->replay_endpoint();
  const auto second = Publisher::open(config, *ring_);
  ASSERT_FALSE(second.ok());
  EXPECT_NE(second.error().message.find(config.replay_endpoint), std::string::npos);
}

}  // namespace
}  // namespace pagoda::events
