#include "server/connection.h"

#include <fmt/format.h>

#include <boost/asio/post.hpp>
#include <chrono>
#include <exception>
#include <utility>

#include "server/api_error.h"
#include "server/completion_log.h"

namespace pagoda::server {
namespace {

namespace asio = boost::asio;
using asio::awaitable;
using boost::system::error_code;

using Outcome = Transport::Outcome;
using Clock = std::chrono::steady_clock;

constexpr std::size_t kReadBytes = 4 << 10;
constexpr std::size_t kBodyReadBytes = 64 << 10;
constexpr std::size_t kWritePieceBytes = 64 << 10;
constexpr std::size_t kSlowestBytes = 16 << 10;  // a second, of a long reply
// The first bytes of a body are not counted against body_memory, so that small requests are served
// however much others send.
constexpr std::size_t kBodyBytesFree = 64 << 10;
// After a refusal the client gets this long to read it before the socket is closed.
constexpr std::chrono::milliseconds kLinger{2'000};
constexpr std::size_t kLingerBytesMax = 64 << 20;

bool went_well(const std::optional<Outcome>& outcome) {
  return outcome && !std::get<error_code>(*outcome);
}

}  // namespace

Connection::Connection(std::unique_ptr<Transport> transport, ClientAddress client,
                       const ServerState& state, const ConnectionOptions& options)
    : transport_(std::move(transport)),
      client_(std::move(client)),
      state_(state),
      options_(options),
      deadline_(executor()),
      alarm_(executor()) {
  error_code ignored;
  transport_->socket().set_option(asio::ip::tcp::no_delay(true), ignored);
  state_.meters().count_connection();
}

Connection::~Connection() { state_.meters().count_disconnection(); }

awaitable<void> Connection::run() {
  const bool opened = went_well(co_await within(options_.request_timeout, transport_->open()));
  Next next = opened ? Next::kRequest : Next::kBroken;
  while (next == Next::kRequest && state_.phase() != Phase::kStopping) {
    if (!co_await wait_for_bytes()) break;
    next = co_await serve_request();
  }
  if (next != Next::kBroken) co_await within(kLinger, transport_->finish());
  error_code ignored;
  transport_->socket().shutdown(Transport::Socket::shutdown_both, ignored);
  transport_->socket().close(ignored);
}

// Whatever a handler throws, the client gets an error reply, or sees the connection close where a
// reply had begun. The request's memory is released before.
awaitable<Connection::Next> Connection::serve_request() {
  Incoming incoming;
  reply_begun_ = false;
  std::exception_ptr thrown;
  try {
    co_return co_await read_and_answer(incoming);
  } catch (...) {
    thrown = std::current_exception();
  }
  std::string().swap(incoming.request.body);
  incoming.body_memory = {};
  incoming.keep_alive = false;
  if (incoming.request.id.empty()) incoming.request.id = fresh_request_id();
  state_.log().write_thrown(incoming.request.id, incoming.request.path, thrown);
  if (reply_begun_) co_return Next::kBroken;
  const HttpReply reply =
      error_reply(ApiError(500, "internal error; the server's log says more", {}, "internal_error"),
                  style_of(incoming.request.path));
  if (co_await send(incoming, reply)) co_await linger();
  co_return Next::kEnd;
}

awaitable<Connection::Next> Connection::read_and_answer(Incoming& incoming) {
  const std::optional<Refused> refused = co_await read_request(incoming);
  if (refused) {
    if (!refused->reply) co_return Next::kEnd;
    log_refusal(incoming.request, *refused->reply, state_);
    if (co_await send(incoming, *refused->reply)) co_await linger();
    co_return Next::kEnd;
  }
  if (!co_await answer(incoming)) co_return Next::kBroken;
  if (flooded_) co_await linger();
  co_return flooded_ || !keeps_alive(incoming) ? Next::kEnd : Next::kRequest;
}

// The limit is a timer beside the operation and not a second coroutine, because every request
// passes here and every idle connection waits here.
awaitable<std::optional<Outcome>> Connection::within(Clock::duration limit,
                                                     awaitable<Outcome> operation) {
  const std::uint64_t number = ++operations_;
  late_ = false;
  deadline_.expires_after(limit);
  deadline_.async_wait([weak = weak_from_this(), number](const error_code& cancelled) {
    const auto self = weak.lock();
    if (cancelled || !self || self->operations_ != number) return;
    self->late_ = true;
    error_code ignored;
    self->transport_->socket().cancel(ignored);
  });
  const Outcome outcome = co_await std::move(operation);
  ++operations_;
  deadline_.cancel();
  if (late_) co_return std::nullopt;
  co_return outcome;
}

// Returns false when the client closed its side or stayed silent for too long.
awaitable<bool> Connection::wait_for_bytes() {
  if (buffer_.size() > 0) co_return true;
  if (gone_) co_return false;
  buffer_.shrink_to_fit();  // so that an idle connection holds little memory
  idle_ = true;
  const std::optional<Outcome> outcome =
      co_await within(options_.idle_timeout, transport_->read_some(buffer_.prepare(kReadBytes)));
  idle_ = false;
  if (!went_well(outcome)) co_return false;
  buffer_.commit(std::get<std::size_t>(*outcome));
  co_return true;
}

awaitable<std::optional<Connection::Refused>> Connection::read_request(Incoming& incoming) {
  using State = RequestReader::State;
  const Clock::time_point deadline = Clock::now() + options_.request_timeout;
  RequestReader reader(options_);
  ByteBudget::Hold body_memory(state_.body_memory());
  for (bool has_head = false;;) {
    const auto bytes = buffer_.data();
    buffer_.consume(reader.put({static_cast<const char*>(bytes.data()), bytes.size()}));
    if (reader.state() == State::kFailed) co_return refusal_of(reader, incoming);
    if (reader.body_bytes_come() > kBodyBytesFree && !body_memory.resize(reader.body_bytes())) {
      incoming = incoming_of(reader.head(), reader);
      incoming.keep_alive = false;  // the request's body is still to come
      co_return Refused{error_reply(out_of_body_memory(state_.body_memory(), reader.body_bytes()),
                                    style_of(incoming.request.path))};
    }
    if (reader.state() == State::kDone) break;
    if (reader.state() == State::kBody && !std::exchange(has_head, true)) {
      incoming = incoming_of(reader.head(), reader);
      incoming.keep_alive = false;  // until the body has come
      std::optional<HttpReply> refusal = co_await take_head(incoming, reader);
      if (refusal) co_return Refused{std::move(refusal)};
    }
    const auto room = buffer_.prepare(has_head ? kBodyReadBytes : kReadBytes);
    const std::optional<Outcome> outcome =
        co_await within(deadline - Clock::now(), transport_->read_some(room));
    const auto [error, count] = outcome.value_or(Outcome());
    buffer_.commit(count);
    // The connection is broken, so no error can be sent.
    if (error && error != asio::error::eof) co_return Refused{};
    if (!outcome) reader.give_up();
    if (error == asio::error::eof) reader.end();
    if (reader.state() == State::kFailed) co_return refusal_of(reader, incoming);
  }
  incoming = incoming_of(reader.take(), reader);
  incoming.body_memory = std::move(body_memory);
  co_return std::nullopt;
}

// A client that sent nothing but empty lines gets no reply.
Connection::Refused Connection::refusal_of(const RequestReader& reader, Incoming& incoming) {
  if (!reader.has_begun()) return {};
  incoming = {.request = reader.head()};
  return {error_reply(reader.error(), style_of(incoming.request.path))};
}

// A caller without access is refused before its body is read.
awaitable<std::optional<HttpReply>> Connection::take_head(const Incoming& incoming,
                                                          const RequestReader& reader) {
  std::optional<HttpReply> refusal = refuse_early(incoming.request, state_);
  if (!refusal && reader.expects_continue()) co_await write("HTTP/1.1 100 Continue\r\n\r\n");
  co_return refusal;
}

Connection::Incoming Connection::incoming_of(HttpRequest request,
                                             const RequestReader& reader) const {
  request.caller = identify(request.authorization, state_.keys());
  request.caller.is_local = client_.is_local && !request.is_forwarded;
  return {std::move(request), reader.version(), reader.keep_alive(), {}};
}

// A client that does not read blocks its own connection only, and for at most write_timeout a
// piece. Replies take memory until they are written: all of it takes no longer than that and a
// second for every kSlowestBytes.
awaitable<bool> Connection::write(std::string_view bytes) {
  const asio::const_buffer all = asio::buffer(bytes);
  asio::const_buffer rest = all + transport_->write_now(all);  // usually nothing is left
  if (rest.size() == 0) co_return true;
  const auto seconds = static_cast<std::int64_t>(rest.size() / kSlowestBytes);
  const Clock::time_point end =
      Clock::now() + options_.write_timeout + std::chrono::seconds(seconds);
  while (rest.size() > 0) {
    const asio::const_buffer piece = asio::buffer(rest, kWritePieceBytes);
    const Clock::duration left = end - Clock::now();
    const auto outcome = co_await within(std::min<Clock::duration>(options_.write_timeout, left),
                                         transport_->write(piece));
    if (!went_well(outcome)) co_return false;
    rest += piece.size();
  }
  co_return true;
}

// Closing a socket with unread bytes resets it, and the client might never see the reply.
awaitable<void> Connection::linger() {
  error_code ignored;
  transport_->socket().shutdown(Transport::Socket::shutdown_send, ignored);
  const Clock::time_point end = Clock::now() + kLinger;
  std::size_t read = 0;
  while (read < kLingerBytesMax && Clock::now() < end) {
    buffer_.clear();
    const std::optional<Outcome> outcome =
        co_await within(kLinger, transport_->read_some(buffer_.prepare(kBodyReadBytes)));
    if (!went_well(outcome)) co_return;
    read += std::get<std::size_t>(*outcome);
  }
}

// When there is no memory to call the waker, the connection polls after options_.keep_alive.
std::function<void()> Connection::waker() {
  return [weak = weak_from_this(), executor = executor()] {
    try {
      asio::post(executor, [weak] {
        if (const auto self = weak.lock()) self->wake();
      });
    } catch (...) {
    }
  };
}

void Connection::wake() {
  woken_ = true;
  alarm_.cancel();
}

void Connection::stop() {
  asio::post(executor(), [self = shared_from_this()] {
    error_code ignored;
    if (self->idle_) self->transport_->socket().close(ignored);
    self->wake();
  });
}

void Connection::close() {
  asio::post(executor(), [self = shared_from_this()] {
    error_code ignored;
    self->transport_->socket().close(ignored);
    self->wake();
  });
}

}  // namespace pagoda::server
