#include "server/connection.h"

#include <fmt/format.h>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/experimental/awaitable_operators.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/beast/http/status.hpp>
#include <chrono>
#include <exception>
#include <utility>

#include "server/api_error.h"
#include "server/completion_log.h"

namespace pagoda::server {
namespace {

namespace asio = boost::asio;
namespace http = boost::beast::http;
using asio::awaitable;
using asio::experimental::awaitable_operators::operator||;
using boost::system::error_code;

using Outcome = Wire::Outcome;
using Clock = std::chrono::steady_clock;

constexpr auto kTuple = asio::as_tuple(asio::use_awaitable);
constexpr std::size_t kReadBytes = 4 << 10;
constexpr std::size_t kBodyReadBytes = 64 << 10;
// A body's first bytes are not counted: who asks little is served whatever others send.
constexpr std::size_t kBodyBytesFree = 64 << 10;
// Bodies and replies up to these are read and made where they come: some milliseconds.
constexpr std::size_t kShortBodyBytes = 64 << 10;
constexpr std::uint64_t kShortReplyBytes = 1 << 20;
// Requests that take as much are started and ended elsewhere; after them, and after bodies of that
// size, the heap is given back to the system.
constexpr std::uint64_t kLargeRequestBytes = 1 << 20;
// Between two reads of what is thrown away: a client that floods costs little, and is seen leaving.
constexpr std::chrono::milliseconds kFloodPause{20};
// After a refusal: time for the client to read it before the connection is torn down.
constexpr std::chrono::milliseconds kLinger{2'000};
constexpr std::size_t kLingerBytesMax = 64 << 20;

ApiError out_of_body_memory(const ByteBudget& memory) {
  return {503,
          fmt::format("the bodies of other requests take {} of {} bytes of memory "
                      "(--max-total-body-bytes)",
                      memory.bytes_held(), memory.bytes_max()),
          {},
          "out_of_body_memory"};
}

ApiError out_of_reply_memory(const ByteBudget& memory) {
  return {503,
          fmt::format("other requests take {} of {} bytes of memory (--max-request-memory-bytes), "
                      "which leaves none for this reply",
                      memory.bytes_held(), memory.bytes_max()),
          {},
          "out_of_request_memory"};
}

bool went_well(const std::optional<Outcome>& outcome) {
  return outcome && !std::get<error_code>(*outcome);
}

}  // namespace

Connection::Connection(std::unique_ptr<Wire> wire, const ServerState& state,
                       const ConnectionOptions& options, TextWorkers& workers)
    : wire_(std::move(wire)),
      state_(state),
      options_(options),
      workers_(workers),
      deadline_(executor()),
      alarm_(executor()) {
  error_code ignored;
  wire_->socket().set_option(asio::ip::tcp::no_delay(true), ignored);
  state_.meters().count_connection();
}

Connection::~Connection() { state_.meters().count_disconnection(); }

awaitable<void> Connection::run() {
  bool good = went_well(co_await within(options_.request_timeout, wire_->open()));
  while (good && state_.phase() != Phase::kStopping) {
    if (!co_await wait_for_bytes()) break;
    Read read = co_await read_request();
    if (const auto* const refused = std::get_if<Refused>(&read)) {
      if (!refused->reply) break;
      log_refusal(refused->incoming.request, *refused->reply, state_);
      if (co_await send(refused->incoming, *refused->reply)) co_await linger();
      break;
    }
    auto& incoming = std::get<Incoming>(read);
    good = co_await answer(incoming);
    if (good && flooded_) co_await linger();
    if (flooded_ || !keeps_alive(incoming)) break;
  }
  if (good) co_await within(kLinger, wire_->finish());
  error_code ignored;
  wire_->socket().shutdown(Wire::Socket::shutdown_both, ignored);
  wire_->socket().close(ignored);
}

// A timer beside the operation, not a coroutine beside it: this is on every request's way, and an
// idle connection waits in it.
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
    self->wire_->socket().cancel(ignored);
  });
  const Outcome outcome = co_await std::move(operation);
  ++operations_;
  deadline_.cancel();
  if (late_) co_return std::nullopt;
  co_return outcome;
}

// False when the client has nothing more to say, or says nothing for too long.
awaitable<bool> Connection::wait_for_bytes() {
  if (buffer_.size() > 0) co_return true;
  if (gone_) co_return false;
  buffer_.shrink_to_fit();  // an idle connection costs little
  idle_ = true;
  const std::optional<Outcome> outcome =
      co_await within(options_.idle_timeout, wire_->read_some(buffer_.prepare(kReadBytes)));
  idle_ = false;
  if (!went_well(outcome)) co_return false;
  buffer_.commit(std::get<std::size_t>(*outcome));
  co_return true;
}

awaitable<Connection::Read> Connection::read_request() {
  using State = RequestReader::State;
  const Clock::time_point deadline = Clock::now() + options_.request_timeout;
  RequestReader reader(options_);
  ByteBudget::Hold body_memory(state_.body_memory());
  for (bool has_head = false;;) {
    const auto bytes = buffer_.data();
    buffer_.consume(reader.put({static_cast<const char*>(bytes.data()), bytes.size()}));
    if (reader.state() == State::kFailed) co_return refusal_of(reader);
    if (reader.body_bytes() > kBodyBytesFree && !body_memory.resize(reader.body_bytes())) {
      Incoming unread = incoming_of(reader.head(), reader);
      unread.keep_alive = false;
      co_return Refused{error_reply(out_of_body_memory(state_.body_memory())), std::move(unread)};
    }
    if (reader.state() == State::kDone) break;
    if (reader.state() == State::kBody && !std::exchange(has_head, true)) {
      if (std::optional<HttpReply> refusal = co_await take_head(reader)) {
        Incoming unread = incoming_of(reader.head(), reader);
        unread.keep_alive = false;  // its body is still to come
        co_return Refused{std::move(refusal), std::move(unread)};
      }
    }
    const auto room = buffer_.prepare(has_head ? kBodyReadBytes : kReadBytes);
    const std::optional<Outcome> outcome =
        co_await within(deadline - Clock::now(), wire_->read_some(room));
    const auto [error, count] = outcome.value_or(Outcome());
    buffer_.commit(count);
    // The connection is broken: nobody listens.
    if (error && error != asio::error::eof) co_return Refused{};
    if (!outcome) reader.give_up();
    if (error == asio::error::eof) reader.end();
    if (reader.state() == State::kFailed) co_return refusal_of(reader);
  }
  HttpRequest request = reader.take();
  Incoming incoming = incoming_of(std::move(request), reader);
  incoming.body_memory = std::move(body_memory);
  co_return Read(std::move(incoming));
}

// Nothing is said to who sent nothing but empty lines.
Connection::Refused Connection::refusal_of(const RequestReader& reader) {
  if (!reader.has_begun()) return {};
  return {error_reply(reader.error()), {.request = reader.head()}};
}

// Whoever may not ask is told before its body comes.
awaitable<std::optional<HttpReply>> Connection::take_head(const RequestReader& reader) {
  const Incoming incoming = incoming_of(reader.head(), reader);
  std::optional<HttpReply> refusal = refuse_early(incoming.request, state_);
  if (!refusal && reader.expects_continue()) co_await write("HTTP/1.1 100 Continue\r\n\r\n");
  co_return refusal;
}

Connection::Incoming Connection::incoming_of(HttpRequest request,
                                             const RequestReader& reader) const {
  Incoming incoming = {std::move(request), reader.version(), reader.keep_alive(), {}};
  incoming.request.caller = identify(incoming.request.authorization, state_.keys());
  return incoming;
}

// What `work` returns, or throws, on a thread for long work. Not beside watch_client(): nothing
// that it uses may end before it does.
template <class Work>
awaitable<std::invoke_result_t<Work>> Connection::on_worker(Work work) {
  std::optional<std::invoke_result_t<Work>> outcome;
  std::exception_ptr thrown;
  bool done = false;
  asio::steady_timer waiting(executor(), asio::steady_timer::time_point::max());
  workers_.run([&, self = shared_from_this()] {
    try {
      outcome.emplace(work());
    } catch (...) {
      thrown = std::current_exception();
    }
    asio::post(self->executor(), [&done, &waiting, self] {
      done = true;
      waiting.cancel();
    });
  });
  while (!done) co_await waiting.async_wait(kTuple);
  if (thrown) std::rethrow_exception(thrown);
  co_return std::move(*outcome);
}

// A completion that the engine refuses has ended with an error.
void Connection::start(Completion& completion) {
  try {
    completion.start(waker());
  } catch (const ApiError& error) {
    completion.abort(error);
  }
}

// A reply, or a completion that was started. What takes long is done on other threads.
awaitable<Routed> Connection::begin(Incoming& incoming) {
  HttpRequest& request = incoming.request;
  const std::size_t body_bytes = request.body.size();
  std::optional<Routed> routed;
  if (body_bytes > kShortBodyBytes) {
    routed = co_await on_worker([&] { return route(request, state_); });
  } else {
    routed = route(request, state_);
  }
  std::string().swap(request.body);  // gives its memory back
  incoming.body_memory = {};
  if (body_bytes >= kLargeRequestBytes) workers_.tidy_later();
  if (const auto* const made = std::get_if<std::unique_ptr<Completion>>(&*routed)) {
    Completion& completion = **made;
    if (completion.memory_bytes() < kLargeRequestBytes) {
      start(completion);
    } else {
      co_await on_worker([&] { return start(completion), true; });
    }
  }
  co_return std::move(*routed);
}

// All answers: false when the connection is of no more use.
awaitable<bool> Connection::answer(Incoming& incoming) {
  Routed routed = co_await begin(incoming);
  if (const auto* const reply = std::get_if<HttpReply>(&routed)) {
    log_refusal(incoming.request, *reply, state_);
    // A client that does not read keeps a reply in memory for as long as a write may take.
    ByteBudget::Hold memory(state_.request_memory());
    if (reply->body.size() > kShortReplyBytes && !memory.resize(reply->body.size())) {
      co_return co_await send(incoming, error_reply(out_of_reply_memory(state_.request_memory())));
    }
    co_return co_await send(incoming, *reply);
  }
  if (const auto* const deferred = std::get_if<std::unique_ptr<DeferredReply>>(&routed)) {
    co_return co_await answer_later(incoming, **deferred);
  }
  std::shared_ptr<Completion> completion = std::get<std::unique_ptr<Completion>>(std::move(routed));
  const bool usable = co_await answer_completion(incoming, *completion);
  log_completion(incoming.request, *completion, state_);
  if (completion->memory_bytes() >= kLargeRequestBytes) {
    workers_.run([ended = std::move(completion)] {});  // destroys it there
    workers_.tidy_later();
  }
  co_return usable;
}

// A client that goes away meanwhile has no more wishes: its completion is destroyed, and with that
// cancelled.
awaitable<bool> Connection::answer_completion(Incoming& incoming, Completion& completion) {
  const auto first = co_await (produce(incoming, completion) || watch_client());
  if (first.index() != 0 || std::get<0>(first) == Produced::kBroken) co_return false;
  if (std::get<0>(first) == Produced::kStream) co_return true;
  co_return co_await send_whole(incoming, completion);
}

awaitable<bool> Connection::send_whole(const Incoming& incoming, const Completion& completion) {
  if (completion.error()) co_return co_await send(incoming, error_reply(*completion.error()));
  if (completion.memory_bytes() <= kShortReplyBytes) {
    co_return co_await send(incoming, completion.reply());
  }
  const HttpReply reply = co_await on_worker([&] { return completion.reply(); });
  co_return co_await send(incoming, reply);
}

awaitable<Connection::Produced> Connection::produce(Incoming& incoming, Completion& completion) {
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
    if (!streaming && !co_await send_stream_header(incoming)) co_return Produced::kBroken;
    streaming = true;
    const bool last = completion.finished();
    if (!co_await send_stream(incoming, std::move(bytes), last)) co_return Produced::kBroken;
  }
  co_return streaming ? Produced::kStream : Produced::kWhole;
}

awaitable<bool> Connection::answer_later(const Incoming& incoming, DeferredReply& deferred) {
  deferred.start(waker());
  const auto first = co_await (await_reply(incoming, deferred) || watch_client());
  co_return first.index() == 0 && std::get<0>(first);
}

awaitable<bool> Connection::await_reply(const Incoming& incoming, DeferredReply& deferred) {
  for (;;) {
    std::optional<HttpReply> reply = deferred.take();
    if (!reply && state_.phase() == Phase::kStopping) {
      reply = error_reply(ApiError(503, "the server is stopping", {}, "draining"));
    }
    if (reply) {
      log_refusal(incoming.request, *reply, state_);
      co_return co_await send(incoming, *reply);
    }
    co_await wait_for_wake();
  }
}

// False when nothing came for as long as a stream may be silent.
awaitable<bool> Connection::wait_for_wake() {
  if (!woken_) {
    alarm_.expires_after(options_.keep_alive);
    co_await alarm_.async_wait(kTuple);
  }
  co_return std::exchange(woken_, false);
}

// Returns when the client is gone. What it sends meanwhile is kept: it may be the next request. Of
// more than is kept nothing is: it is read slowly and thrown away, since the client's end is behind
// it, and the connection ends with this answer.
awaitable<void> Connection::watch_client() {
  asio::steady_timer pause(executor());
  for (;;) {
    const auto room = buffer_.prepare(flooded_ ? kBodyReadBytes : kReadBytes);
    const auto [error, bytes] = co_await wire_->read_some(room);
    // An end that was read once is not told again: the next read would wait for it for ever.
    gone_ = error && error != asio::error::operation_aborted;
    if (error) co_return;
    buffer_.commit(bytes);
    flooded_ = flooded_ || buffer_.size() > options_.ahead_bytes_max;
    if (!flooded_) continue;
    buffer_.clear();
    pause.expires_after(kFloodPause);
    co_await pause.async_wait(kTuple);
  }
}

bool Connection::keeps_alive(const Incoming& incoming) const {
  return incoming.keep_alive && state_.phase() < Phase::kDraining;
}

// `framing` says how the body's end is found.
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
  for (const auto& [name, value] : reply_headers(incoming.request, state_)) add(name, value);
  if (keep_alive && incoming.version < 11) add("Connection", "keep-alive");
  if (!keep_alive && incoming.version >= 11) add("Connection", "close");
  return text + framing + "\r\n";
}

awaitable<bool> Connection::send(const Incoming& incoming, const HttpReply& reply) {
  state_.meters().count_reply(endpoint_of(incoming.request.path), reply.status);
  const bool has_body = reply.status != 204;
  const std::string framing =
      has_body ? fmt::format("Content-Length: {}\r\n", reply.body.size()) : std::string();
  std::string bytes = header_text(incoming, reply, framing, keeps_alive(incoming));
  const bool shows_body = has_body && incoming.request.method != "HEAD";
  // A long body is not copied behind its header.
  const bool apart = shows_body && reply.body.size() > kShortReplyBytes;
  if (shows_body && !apart) bytes += reply.body;
  const bool written = co_await write(bytes);
  if (!written || !apart) co_return written;
  co_return co_await write(reply.body);
}

awaitable<bool> Connection::send_stream_header(Incoming& incoming) {
  state_.meters().count_reply(endpoint_of(incoming.request.path), 200);
  const HttpReply stream = {.content_type = "text/event-stream; charset=utf-8",
                            .headers = {{"Cache-Control", "no-cache"}}};
  const bool chunked = incoming.version >= 11;
  if (!chunked) incoming.keep_alive = false;  // the connection's end is the stream's
  const std::string header = header_text(
      incoming, stream, chunked ? "Transfer-Encoding: chunked\r\n" : "", keeps_alive(incoming));
  co_return co_await write(header);
}

awaitable<bool> Connection::send_stream(const Incoming& incoming, std::string bytes, bool last) {
  if (incoming.version >= 11) {
    bytes = fmt::format("{:x}\r\n{}\r\n{}", bytes.size(), bytes, last ? "0\r\n\r\n" : "");
  }
  co_return co_await write(bytes);
}

// A client that does not read waits alone, and not for long.
awaitable<bool> Connection::write(std::string_view bytes) {
  const asio::const_buffer all = asio::buffer(bytes);
  const asio::const_buffer rest = all + wire_->write_now(all);  // mostly nothing
  if (rest.size() == 0) co_return true;
  co_return went_well(co_await within(options_.write_timeout, wire_->write(rest)));
}

// Closing a socket with unread bytes resets it, and the client may never see what was sent.
awaitable<void> Connection::linger() {
  error_code ignored;
  wire_->socket().shutdown(Wire::Socket::shutdown_send, ignored);
  const Clock::time_point end = Clock::now() + kLinger;
  std::size_t read = 0;
  while (read < kLingerBytesMax && Clock::now() < end) {
    buffer_.clear();
    const std::optional<Outcome> outcome =
        co_await within(kLinger, wire_->read_some(buffer_.prepare(kBodyReadBytes)));
    if (!went_well(outcome)) co_return;
    read += std::get<std::size_t>(*outcome);
  }
}

std::function<void()> Connection::waker() {
  return [weak = weak_from_this(), executor = executor()] {
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
  asio::post(executor(), [self = shared_from_this()] {
    error_code ignored;
    if (self->idle_) self->wire_->socket().close(ignored);
    self->wake();
  });
}

void Connection::close() {
  asio::post(executor(), [self = shared_from_this()] {
    error_code ignored;
    self->wire_->socket().close(ignored);
    self->wake();
  });
}

}  // namespace pagoda::server
