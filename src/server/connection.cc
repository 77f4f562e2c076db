#include "server/connection.h"

#include <fmt/format.h>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/experimental/awaitable_operators.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/http.hpp>
#include <tuple>
#include <utility>

#include "server/api_error.h"
#include "server/completion_log.h"
#include "server/router.h"

namespace pagoda::server {
namespace {

namespace asio = boost::asio;
namespace http = boost::beast::http;
using asio::awaitable;
using asio::experimental::awaitable_operators::operator||;
using boost::system::error_code;

using Outcome = std::tuple<error_code, std::size_t>;
using Parser = http::request_parser<http::string_body>;

constexpr auto kTuple = asio::as_tuple(asio::use_awaitable);
// What a client may send ahead while it waits for an answer.
constexpr std::size_t kAheadBytesMax = 64 << 10;
constexpr std::size_t kReadBytes = 4 << 10;
// After a refusal: time for the client to read it before the connection is torn down.
constexpr std::chrono::milliseconds kLinger{2'000};
constexpr std::size_t kLingerBytesMax = 64 << 20;

// The operation's outcome; nothing when it takes longer than `limit`.
awaitable<std::optional<Outcome>> within(std::chrono::milliseconds limit,
                                         awaitable<Outcome> operation) {
  asio::steady_timer timer(co_await asio::this_coro::executor, limit);
  auto first = co_await (std::move(operation) || timer.async_wait(kTuple));
  if (first.index() == 1) co_return std::nullopt;
  co_return std::get<0>(first);
}

bool went_well(const std::optional<Outcome>& outcome) {
  return outcome && !std::get<error_code>(*outcome);
}

ApiError parse_failure(const error_code& error, const ConnectionOptions& options) {
  if (error == http::error::body_limit) {
    return {413,
            fmt::format("the body has more than {} bytes", options.body_bytes_max),
            {},
            "body_too_large"};
  }
  if (error == http::error::header_limit || error == http::error::buffer_overflow) {
    return {431,
            fmt::format("the header has more than {} bytes", options.header_bytes_max),
            {},
            "header_too_large"};
  }
  if (error == http::error::partial_message) {
    return {400, "the request ends before it is complete", {}, "incomplete_request"};
  }
  return {400, fmt::format("this is not HTTP: {}", error.message()), {}, "bad_http"};
}

template <class Response>
void set_headers(Response& response, const HttpReply& reply, bool keep_alive) {
  response.set(http::field::server, "pagoda");
  response.set(http::field::content_type, reply.content_type);
  for (const auto& [name, value] : reply.headers) response.set(name, value);
  response.keep_alive(keep_alive);
}

}  // namespace

Connection::Connection(Socket socket, const ServerState& state, const ConnectionOptions& options)
    : socket_(std::move(socket)), state_(state), options_(options), alarm_(socket_.get_executor()) {
  error_code ignored;
  socket_.set_option(asio::ip::tcp::no_delay(true), ignored);
}

awaitable<void> Connection::run() {
  while (state_.phase() != Phase::kStopping) {
    if (!co_await wait_for_bytes()) break;
    const Read read = co_await read_request();
    if (const auto* const refused = std::get_if<Refused>(&read)) {
      const Incoming unread;
      if (refused->reply && co_await send(unread, *refused->reply)) co_await linger();
      break;
    }
    const auto& incoming = std::get<Incoming>(read);
    if (!co_await answer(incoming) || !keeps_alive(incoming)) break;
  }
  error_code ignored;
  socket_.shutdown(Socket::shutdown_both, ignored);
  socket_.close(ignored);
}

// False when the client has nothing more to say, or says nothing for too long.
awaitable<bool> Connection::wait_for_bytes() {
  if (buffer_.size() > 0) co_return true;
  idle_ = true;
  auto reading = socket_.async_read_some(buffer_.prepare(kReadBytes), kTuple);
  const std::optional<Outcome> outcome = co_await within(options_.idle_timeout, std::move(reading));
  idle_ = false;
  if (!went_well(outcome)) co_return false;
  buffer_.commit(std::get<std::size_t>(*outcome));
  co_return true;
}

awaitable<Connection::Read> Connection::read_request() {
  Parser parser;
  parser.header_limit(options_.header_bytes_max);
  parser.body_limit(options_.body_bytes_max);
  auto header = http::async_read_header(socket_, buffer_, parser, kTuple);
  std::optional<Outcome> outcome = co_await within(options_.request_timeout, std::move(header));
  if (went_well(outcome) && parser.get()[http::field::expect] == "100-continue") {
    static constexpr std::string_view kContinue = "HTTP/1.1 100 Continue\r\n\r\n";
    auto writing = asio::async_write(socket_, asio::buffer(kContinue), kTuple);
    outcome = co_await within(options_.write_timeout, std::move(writing));
  }
  if (went_well(outcome) && !parser.is_done()) {
    auto body = http::async_read(socket_, buffer_, parser, kTuple);
    outcome = co_await within(options_.request_timeout, std::move(body));
  }
  if (!outcome) {
    co_return Refused{error_reply(ApiError(408, "the request did not arrive in time"))};
  }
  const error_code error = std::get<error_code>(*outcome);
  if (error && error.category() != http::make_error_code(http::error::end_of_stream).category()) {
    co_return Refused{};  // the connection is broken: nobody listens
  }
  if (error) co_return Refused{error_reply(parse_failure(error, options_))};
  Incoming incoming;
  const auto& message = parser.get();
  incoming.version = message.version();
  incoming.keep_alive = message.keep_alive();
  incoming.request.method = std::string(message.method_string());
  const std::string_view target(message.target().data(), message.target().size());
  incoming.request.path = std::string(target.substr(0, target.find('?')));
  incoming.request.content_type = std::string(message[http::field::content_type]);
  incoming.request.accept = std::string(message[http::field::accept]);
  incoming.request.body = std::move(parser.get().body());
  co_return Read(std::move(incoming));
}

// All answers: false when the connection is of no more use.
awaitable<bool> Connection::answer(const Incoming& incoming) {
  Routed routed = route(incoming.request, state_);
  if (const auto* const reply = std::get_if<HttpReply>(&routed)) {
    log_refusal(incoming.request, *reply, state_);
    co_return co_await send(incoming, *reply);
  }
  Completion& completion = *std::get<std::unique_ptr<Completion>>(routed);
  std::optional<HttpReply> refusal;
  try {
    completion.start(waker());
  } catch (const ApiError& error) {
    completion.abort(error);
    refusal = error_reply(error);
  }
  const bool usable = refusal ? co_await send(incoming, *refusal)
                              : co_await answer_completion(incoming, completion);
  log_completion(incoming.request, completion, state_);
  co_return usable;
}

// A client that goes away meanwhile has no more wishes: its completion is destroyed, and with that
// cancelled.
awaitable<bool> Connection::answer_completion(const Incoming& incoming, Completion& completion) {
  const auto first = co_await (produce(incoming, completion) || watch_client());
  co_return first.index() == 0 && std::get<0>(first);
}

awaitable<bool> Connection::produce(const Incoming& incoming, Completion& completion) {
  bool streaming = false;
  while (!completion.finished()) {
    const bool woken = co_await wait_for_wake();
    // Asked first: what a drained engine left is taken before the rest is given up.
    const bool stopping = state_.phase() == Phase::kStopping;
    std::string bytes = completion.take();
    if (stopping) {
      bytes += completion.abort(ApiError(503, "the server is stopping", {}, "draining"));
    }
    if (!woken && completion.streams() && bytes.empty()) bytes = completion.keep_alive();
    if (bytes.empty()) continue;
    if (!streaming && !co_await send_stream_header(incoming)) co_return false;
    streaming = true;
    const bool last = completion.finished();
    if (!co_await send_stream(incoming, std::move(bytes), last)) co_return false;
  }
  if (streaming) co_return true;
  const HttpReply reply =
      completion.error() ? error_reply(*completion.error()) : completion.reply();
  co_return co_await send(incoming, reply);
}

// False when nothing came for as long as a stream may be silent.
awaitable<bool> Connection::wait_for_wake() {
  if (!woken_) {
    alarm_.expires_after(options_.keep_alive);
    co_await alarm_.async_wait(kTuple);
  }
  co_return std::exchange(woken_, false);
}

// Returns when the client is gone. What it sends meanwhile is kept: it may be the next request.
awaitable<void> Connection::watch_client() {
  while (buffer_.size() < kAheadBytesMax) {
    const auto [error, bytes] =
        co_await socket_.async_read_some(buffer_.prepare(kReadBytes), kTuple);
    if (error) co_return;
    buffer_.commit(bytes);
  }
  asio::steady_timer forever(socket_.get_executor(), asio::steady_timer::time_point::max());
  co_await forever.async_wait(kTuple);
}

bool Connection::keeps_alive(const Incoming& incoming) const {
  return incoming.keep_alive && state_.phase() < Phase::kDraining;
}

awaitable<bool> Connection::send(const Incoming& incoming, const HttpReply& reply) {
  state_.meters().count_reply(endpoint_of(incoming.request.path), reply.status);
  const auto status = static_cast<http::status>(reply.status);
  http::response<http::string_body> response(status, incoming.version);
  set_headers(response, reply, keeps_alive(incoming));
  response.content_length(reply.body.size());
  if (incoming.request.method != "HEAD") response.body() = reply.body;
  auto writing = http::async_write(socket_, response, kTuple);
  co_return went_well(co_await within(options_.write_timeout, std::move(writing)));
}

awaitable<bool> Connection::send_stream_header(const Incoming& incoming) {
  state_.meters().count_reply(endpoint_of(incoming.request.path), 200);
  http::response<http::empty_body> response(http::status::ok, incoming.version);
  const HttpReply stream = {.content_type = "text/event-stream; charset=utf-8",
                            .headers = {{"Cache-Control", "no-cache"}}};
  const bool chunked = incoming.version >= 11;  // else the connection's end is the stream's
  set_headers(response, stream, chunked && keeps_alive(incoming));
  response.chunked(chunked);
  http::response_serializer<http::empty_body> serializer(response);
  auto writing = http::async_write_header(socket_, serializer, kTuple);
  co_return went_well(co_await within(options_.write_timeout, std::move(writing)));
}

awaitable<bool> Connection::send_stream(const Incoming& incoming, std::string bytes, bool last) {
  if (incoming.version >= 11) {
    bytes = fmt::format("{:x}\r\n{}\r\n{}", bytes.size(), bytes, last ? "0\r\n\r\n" : "");
  }
  auto writing = asio::async_write(socket_, asio::buffer(bytes), kTuple);
  co_return went_well(co_await within(options_.write_timeout, std::move(writing)));
}

// Closing a socket with unread bytes resets it, and the client may never see what was sent.
awaitable<void> Connection::linger() {
  error_code ignored;
  socket_.shutdown(Socket::shutdown_send, ignored);
  const auto end = std::chrono::steady_clock::now() + kLinger;
  std::size_t read = 0;
  while (read < kLingerBytesMax && std::chrono::steady_clock::now() < end) {
    buffer_.clear();
    auto reading = socket_.async_read_some(buffer_.prepare(kAheadBytesMax), kTuple);
    const std::optional<Outcome> outcome = co_await within(kLinger, std::move(reading));
    if (!went_well(outcome)) co_return;
    read += std::get<std::size_t>(*outcome);
  }
}

std::function<void()> Connection::waker() {
  return [weak = weak_from_this(), executor = socket_.get_executor()] {
    asio::post(executor, [weak] {
      if (const auto self = weak.lock()) self->wake();
    });
  };
}

void Connection::wake() {
  woken_ = true;
  alarm_.cancel();
}

void Connection::stop() {
  asio::post(socket_.get_executor(), [self = shared_from_this()] {
    error_code ignored;
    if (self->idle_) self->socket_.close(ignored);
    self->wake();
  });
}

void Connection::close() {
  asio::post(socket_.get_executor(), [self = shared_from_this()] {
    error_code ignored;
    self->socket_.close(ignored);
    self->wake();
  });
}

}  // namespace pagoda::server
