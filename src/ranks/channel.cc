#include "ranks/channel.h"

#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

namespace pagoda::ranks {
namespace {

Error io_error(const char* what) {
  const bool is_late = errno == EAGAIN || errno == EWOULDBLOCK;
  return {ErrorCode::kIo,
          fmt::format("{}: {}", what, is_late ? "took too long" : std::strerror(errno))};
}

Status send_all(int socket, const std::byte* data, std::size_t bytes) {
  while (bytes > 0) {
    const ssize_t sent = ::send(socket, data, bytes, MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0) return io_error("sending");
    data += sent;
    bytes -= static_cast<std::size_t>(sent);
  }
  return ok_status();
}

Status receive_all(int socket, std::byte* data, std::size_t bytes) {
  while (bytes > 0) {
    const ssize_t read = ::recv(socket, data, bytes, 0);
    if (read < 0 && errno == EINTR) continue;
    if (read < 0 && errno == ECONNRESET) return Error{ErrorCode::kNotFound, "closed"};
    if (read < 0) return io_error("receiving");
    if (read == 0) return Error{ErrorCode::kNotFound, "closed"};
    data += read;
    bytes -= static_cast<std::size_t>(read);
  }
  return ok_status();
}

}  // namespace

Channel::Channel(Channel&& other) noexcept : socket_(std::exchange(other.socket_, -1)) {}

Channel& Channel::operator=(Channel&& other) noexcept {
  std::swap(socket_, other.socket_);
  return *this;
}

Channel::~Channel() {
  if (socket_ >= 0) close(socket_);
}

Result<Channel> Channel::connect(const std::string& path) {
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path) {
    return Error{ErrorCode::kInvalidArgument, fmt::format("{}: is too long for a socket", path)};
  }
  std::memcpy(address.sun_path, path.data(), path.size());
  Channel channel(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (channel.socket_ < 0) return io_error("socket");
  if (::connect(channel.socket_, reinterpret_cast<const sockaddr*>(&address), sizeof address) < 0) {
    return Error{ErrorCode::kIo, fmt::format("{}: {}", path, std::strerror(errno))};
  }
  return channel;
}

void Channel::set_limit_ms(std::int64_t limit_ms) const {
  timeval limit = {};
  limit.tv_sec = limit_ms / 1000;
  limit.tv_usec = limit_ms % 1000 * 1000;
  setsockopt(socket_, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
  setsockopt(socket_, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
}

Status Channel::send(MessageKind kind, std::span<const std::byte> body) const {
  const MessageHeader header = {.kind = kind, .bytes = body.size()};
  if (body.size() > kMessageBytesMax) {
    return Error{ErrorCode::kOutOfRange,
                 fmt::format("a message to a rank has {} bytes, of at most {}", body.size(),
                             kMessageBytesMax)};
  }
  RETURN_IF_ERROR(send_all(socket_, reinterpret_cast<const std::byte*>(&header), sizeof header));
  return send_all(socket_, body.data(), body.size());
}

Result<MessageHeader> Channel::receive_header() const {
  MessageHeader header = {};
  RETURN_IF_ERROR(receive_all(socket_, reinterpret_cast<std::byte*>(&header), sizeof header));
  const bool is_known = header.kind >= MessageKind::kHello && header.kind <= MessageKind::kFailure;
  if (!is_known || header.reserved != 0 || header.bytes > kMessageBytesMax) {
    return Error{ErrorCode::kCorrupt, "a message of a rank is not one of this program's"};
  }
  return header;
}

Status Channel::receive_body(std::span<std::byte> body) const {
  return receive_all(socket_, body.data(), body.size());
}

Result<Bytes> Channel::receive(MessageKind kind) const {
  ASSIGN_OR_RETURN(const MessageHeader header, receive_header());
  if (header.kind != kind) {
    return Error{ErrorCode::kCorrupt,
                 fmt::format("a message of kind {} came where one of kind {} was expected",
                             static_cast<int>(header.kind), static_cast<int>(kind))};
  }
  Bytes body(header.bytes);
  RETURN_IF_ERROR(receive_body(body));
  return body;
}

}  // namespace pagoda::ranks
