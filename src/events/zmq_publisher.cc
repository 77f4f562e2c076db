#include "events/zmq_publisher.h"

#include <endian.h>
#include <fmt/format.h>
#include <zmq.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <utility>

#include "base/random.h"

namespace pagoda::events {
namespace {

constexpr std::uint64_t kEventsAtOnce = 4096;
constexpr std::size_t kSnapshotClientsMax = 64;
constexpr std::uint64_t kEndOfReplay = UINT64_MAX;

}  // namespace

Result<std::unique_ptr<ZmqPublisher>> ZmqPublisher::bind(const EventsConfig& config,
                                                         kv::EventRing& ring) {
  std::unique_ptr<ZmqPublisher> publisher(new ZmqPublisher(config, ring));
  RETURN_IF_ERROR(publisher->events_.open(config.endpoint));
  if (!config.replay_endpoint.empty()) {
    RETURN_IF_ERROR(publisher->replies_.bind(config.replay_endpoint));
  }
  return publisher;
}

// The ROUTER socket's queue holds a whole replay for one client.
ZmqPublisher::ZmqPublisher(const EventsConfig& config, kv::EventRing& ring)
    : config_(config),
      ring_(ring),
      incarnation_(fmt::format("{:016x}", fresh_seed())),
      events_(context_, SocketKind::kPublish, config.hwm),
      replies_(
          context_, SocketKind::kRouter,
          std::max<std::uint32_t>(config.hwm, static_cast<std::uint32_t>(config.buffer_steps) + 1)),
      buffer_(config.buffer_steps) {}

ZmqPublisher::~ZmqPublisher() { stop(); }

void ZmqPublisher::start(const std::vector<kv::memory::AttentionSpec>& groups, AskForPart ask) {
  EncoderOptions options = {.encoding = config_.encoding,
                            .int_block_hashes = config_.int_block_hashes,
                            .incarnation = config_.incarnation ? incarnation_ : "",
                            .groups = groups,
                            .block_tokens = ring_.block_tokens()};
  batch_.emplace(options);
  part_.emplace(options);
  ask_ = std::move(ask);
  thread_ = std::thread([this] { run(); });
}

void ZmqPublisher::stop() {
  if (!thread_.joinable()) return;
  stopping_ = true;
  wakeup_.notify();
  thread_.join();
}

void ZmqPublisher::run() {
  // Subscribers must forget what an earlier incarnation told them.
  batch_->add({.kind = kv::CacheEventKind::kCleared}, {});
  send_batch();
  while (!stopping_) {
    wait();
    wakeup_.clear();
    if (read_ring()) wakeup_.notify();
    answer_requests();
    continue_snapshot();
  }
  while (read_ring()) {
  }
}

void ZmqPublisher::wait() {
  std::array<zmq_pollitem_t, 2> items = {
      {{nullptr, wakeup_.descriptor(), ZMQ_POLLIN, 0}, {replies_.get(), 0, ZMQ_POLLIN, 0}}};
  zmq_poll(items.data(), static_cast<int>(items.size()), -1);
}

bool ZmqPublisher::read_ring() {
  const std::uint64_t events =
      ring_.read(kEventsAtOnce, [this](const kv::CacheEvent& event,
                                       std::span<const TokenId> tokens) { take(event, tokens); });
  send_batch();
  send_part();
  return events == kEventsAtOnce;
}

void ZmqPublisher::take(const kv::CacheEvent& event, std::span<const TokenId> tokens) {
  switch (event.kind) {
    case kv::CacheEventKind::kLost:
      send_batch();
      ++sequence_;  // the hole in the numbers tells subscribers
      return abandon_snapshot();
    case kv::CacheEventKind::kSnapshotBegin:
      return begin_snapshot();
    case kv::CacheEventKind::kPresent:
      if (begun_) part_->add(event, tokens);
      return;
    case kv::CacheEventKind::kSnapshotPause:
      part_asked_ = false;
      return;
    case kv::CacheEventKind::kSnapshotEnd:
      return end_snapshot();
    default:
      batch_->add(event, tokens);
      if (begun_) part_->add(event, tokens);
  }
}

void ZmqPublisher::send_batch() {
  if (batch_->empty()) return;
  std::string payload = batch_->finish(now_s());
  events_.send({config_.topic, sequence_frame(sequence_), payload});
  buffer_.push(sequence_++, std::move(payload));
}

void ZmqPublisher::answer_requests() {
  while (const auto request = replies_.receive()) answer(*request);
}

// A request is [client, "", payload], as REQ and DEALER sockets send it. Anything else is no
// request.
void ZmqPublisher::answer(const std::vector<std::string>& request) {
  if (request.size() != 3 || !request[1].empty()) return;
  const std::string& client = request[0];
  const std::string& what = request[2];
  if (what.size() == sizeof(std::uint64_t)) {
    std::uint64_t from = 0;
    std::memcpy(&from, what.data(), sizeof from);
    replay(client, be64toh(from));
  } else if (what == "get-incarnation") {
    reply(client, "incarnation", sequence_ - 1, description());
  } else if (what == "get-snapshot") {
    if (waiting_.size() < kSnapshotClientsMax) {
      waiting_.push_back(client);
    } else {
      reply(client, "snapshot-refused", sequence_ - 1, description());
    }
  }
}

void ZmqPublisher::replay(std::string_view client, std::uint64_t from) {
  bool listens = true;
  buffer_.for_each_from(from, [&](const ReplayBuffer::Batch& batch) {
    listens = reply(client, config_.topic, batch.sequence, batch.payload);
    return listens;
  });
  if (listens) reply(client, "", kEndOfReplay, "");
}

double ZmqPublisher::now_s() {
  const auto since_1970 = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration<double>(since_1970).count();
}

std::string ZmqPublisher::sequence_frame(std::uint64_t sequence) {
  const std::uint64_t big_endian = htobe64(sequence);
  return {reinterpret_cast<const char*>(&big_endian), sizeof big_endian};
}

std::string ZmqPublisher::description() const {
  MsgpackWriter writer;
  writer.map(3);
  writer.text("version");
  writer.number(std::uint64_t{1});
  writer.text("incarnation");
  writer.text(incarnation_);
  writer.text("block_size");
  writer.number(std::uint64_t{ring_.block_tokens()});
  return writer.take();
}

}  // namespace pagoda::events
