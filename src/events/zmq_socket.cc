#include "events/zmq_socket.h"

#include <fmt/format.h>
#include <zmq.h>

#include <algorithm>
#include <array>
#include <climits>

#include "base/assert.h"

namespace pagoda::events {
namespace {

constexpr int kLingerMs = 200;  // for messages that are unsent at the end

Error failed(std::string_view what, const std::string& endpoint) {
  return {ErrorCode::kIo,
          fmt::format("cannot {} {}: {}", what, endpoint, zmq_strerror(zmq_errno()))};
}

}  // namespace

ZmqContext::ZmqContext() : context_(zmq_ctx_new()) {
  ASSERT(context_ != nullptr, "a context takes only memory");
}
void ZmqContext::End::operator()(void* context) const { zmq_ctx_term(context); }
void ZmqSocket::Close::operator()(void* socket) const { zmq_close(socket); }

ZmqSocket::ZmqSocket(const ZmqContext& context, SocketKind kind, std::uint32_t messages_max)
    : socket_(zmq_socket(context.get(), kind == SocketKind::kPublish ? ZMQ_PUB : ZMQ_ROUTER)) {
  ASSERT(socket_ != nullptr, "a process may have more than a thousand sockets");
  set(ZMQ_SNDHWM, static_cast<int>(std::min<std::uint32_t>(messages_max, INT_MAX)));
  set(ZMQ_LINGER, kLingerMs);
  // A reply that cannot be sent is an error instead of a silent loss, so that its client is
  // dropped.
  if (kind == SocketKind::kRouter) set(ZMQ_ROUTER_MANDATORY, 1);
}

void ZmqSocket::set(int option, int value) {
  const int outcome = zmq_setsockopt(socket_.get(), option, &value, sizeof value);
  ASSERT(outcome == 0, "the option exists and takes the value");
}

Status ZmqSocket::open(const std::string& endpoint) {
  const bool is_here = endpoint.find('*') != std::string::npos ||
                       endpoint.find("::") != std::string::npos || endpoint.starts_with("ipc://") ||
                       endpoint.starts_with("inproc://");
  if (is_here) return bind(endpoint);
  if (zmq_connect(socket_.get(), endpoint.c_str()) != 0) return failed("connect to", endpoint);
  endpoint_ = endpoint;
  return ok_status();
}

Status ZmqSocket::bind(const std::string& endpoint) {
  if (endpoint.find('[') != std::string::npos) set(ZMQ_IPV6, 1);
  if (zmq_bind(socket_.get(), endpoint.c_str()) != 0) return failed("bind to", endpoint);
  std::array<char, 512> bound{};
  std::size_t bytes = bound.size();
  const int known = zmq_getsockopt(socket_.get(), ZMQ_LAST_ENDPOINT, bound.data(), &bytes);
  endpoint_ = known == 0 ? std::string(bound.data()) : endpoint;
  return ok_status();
}

bool ZmqSocket::send(std::initializer_list<std::string_view> frames) {
  std::size_t left = frames.size();
  for (const std::string_view frame : frames) {
    const int more = --left > 0 ? ZMQ_SNDMORE : 0;
    // ZeroMQ asks for room at the first frame alone.
    if (zmq_send(socket_.get(), frame.data(), frame.size(), ZMQ_DONTWAIT | more) < 0) return false;
  }
  return true;
}

std::optional<std::vector<std::string>> ZmqSocket::receive() {
  std::vector<std::string> frames;
  for (bool more = true; more;) {
    zmq_msg_t frame;
    zmq_msg_init(&frame);
    if (zmq_msg_recv(&frame, socket_.get(), ZMQ_DONTWAIT) < 0) {
      zmq_msg_close(&frame);
      return std::nullopt;
    }
    frames.emplace_back(static_cast<const char*>(zmq_msg_data(&frame)), zmq_msg_size(&frame));
    more = zmq_msg_more(&frame) != 0;
    zmq_msg_close(&frame);
  }
  return frames;
}

}  // namespace pagoda::events
