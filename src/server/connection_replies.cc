// How replies are written to the socket.
#include <fmt/format.h>

#include <boost/asio/awaitable.hpp>
#include <boost/beast/http/status.hpp>
#include <utility>

#include "server/api_error.h"
#include "server/completion_log.h"
#include "server/connection.h"
#include "server/retry_after.h"

namespace pagoda::server {
namespace {

namespace http = boost::beast::http;
using boost::asio::awaitable;

// Replies up to this size are not counted, so that small requests are answered however much memory
// others hold.
constexpr std::size_t kReplyBytesFree = 64 << 10;
// Bodies up to this size are sent in one write with their header; longer ones are not copied.
constexpr std::size_t kBodyBytesCopied = 16 << 10;

}  // namespace

bool Connection::keeps_alive(const Incoming& incoming) const {
  return incoming.keep_alive && state_.phase() < Phase::kDraining;
}

// `framing` is the header that tells how the body ends.
std::string Connection::header_text(const Incoming& incoming, const HttpReply& reply,
                                    const std::string& framing, bool keep_alive) const {
  const auto reason = http::obsolete_reason(static_cast<http::status>(reply.status));
  std::string text = fmt::format("HTTP/1.{} {} {}\r\nServer: pagoda\r\n", incoming.version % 10,
                                 reply.status, std::string_view(reason.data(), reason.size()));
  const auto add = [&](std::string_view name, std::string_view value) {
    text += fmt::format("{}: {}\r\n", name, value);
  };
  if (reply.status != 204) add("Content-Type", reply.content_type);
  for (const auto& [name, value] : reply.headers) add(name, value);
  if (lacks_retry_after(reply)) {
    add("Retry-After", std::to_string(retry_after_s(state_, reply.error)));
  }
  for (const auto& [name, value] : reply_headers(incoming.request, state_)) add(name, value);
  for (const auto& [name, value] : incoming.headers) add(name, value);
  if (keep_alive && incoming.version < 11) add("Connection", "keep-alive");
  if (!keep_alive && incoming.version >= 11) add("Connection", "close");
  return text + framing + "\r\n";
}

// A client that does not read holds a reply in memory for as long as write() says.
awaitable<bool> Connection::send_reply(const Incoming& incoming, HttpReply reply) {
  log_refusal(incoming.request, reply, state_);
  ByteBudget::Hold memory(state_.request_memory());
  if (reply.body.size() > kReplyBytesFree && !memory.resize(reply.body.capacity())) {
    reply = error_reply(out_of_request_memory(state_.request_memory(), reply.body.capacity()),
                        style_of(incoming.request.path));
  }
  co_return co_await send(incoming, reply);
}

awaitable<bool> Connection::send(const Incoming& incoming, const HttpReply& reply) {
  state_.meters().count_reply(endpoint_of(incoming.request.path), reply.status);
  const bool has_body = reply.status != 204;
  const std::string framing =
      has_body ? fmt::format("Content-Length: {}\r\n", reply.body.size()) : std::string();
  std::string bytes = header_text(incoming, reply, framing, keeps_alive(incoming));
  const bool shows_body = has_body && incoming.request.method != "HEAD";
  const bool apart = shows_body && reply.body.size() > kBodyBytesCopied;
  if (shows_body && !apart) bytes += reply.body;
  reply_begun_ = true;
  const bool written = co_await write(bytes);
  if (!written || !apart) co_return written;
  co_return co_await write(reply.body);
}

awaitable<bool> Connection::send_stream_header(Incoming& incoming, std::string_view content_type) {
  state_.meters().count_reply(endpoint_of(incoming.request.path), 200);
  const HttpReply stream = {.content_type = std::string(content_type),
                            .headers = {{"Cache-Control", "no-cache"}}};
  const bool chunked = incoming.version >= 11;
  if (!chunked) incoming.keep_alive = false;  // the stream ends where the connection ends
  const std::string header = header_text(
      incoming, stream, chunked ? "Transfer-Encoding: chunked\r\n" : "", keeps_alive(incoming));
  reply_begun_ = true;
  co_return co_await write(header);
}

awaitable<bool> Connection::send_stream(const Incoming& incoming, std::string bytes, bool last) {
  if (incoming.version >= 11) {
    bytes = fmt::format("{:x}\r\n{}\r\n{}", bytes.size(), bytes, last ? "0\r\n\r\n" : "");
  }
  co_return co_await write(bytes);
}

}  // namespace pagoda::server
