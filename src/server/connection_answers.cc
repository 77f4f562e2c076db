// How a request is answered: what takes long is left to other threads, and a client that leaves
// meanwhile is noticed.
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/cancellation_state.hpp>
#include <boost/asio/experimental/awaitable_operators.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/system/system_error.hpp>
#include <chrono>
#include <exception>
#include <utility>

#include "server/api/chat_prompt.h"
#include "server/api_error.h"
#include "server/completion_log.h"
#include "server/connection.h"
#include "server/text_job.h"

namespace pagoda::server {
namespace {

namespace asio = boost::asio;
using asio::awaitable;
using asio::experimental::awaitable_operators::operator||;

constexpr auto kTuple = asio::as_tuple(asio::use_awaitable);
constexpr std::size_t kAheadReadBytes = 4 << 10;
constexpr std::size_t kFloodReadBytes = 64 << 10;
// Bodies up to this are read where they come: some milliseconds.
constexpr std::size_t kShortBodyBytes = 64 << 10;
// Requests that take as much are started and ended elsewhere; after them, and after bodies of that
// size, the heap is given back to the system.
constexpr std::uint64_t kLargeRequestBytes = 1 << 20;
// Whole replies up to this are made where their connection runs: some milliseconds.
constexpr std::uint64_t kShortReplyBytes = 1 << 20;
// Between two reads of what is thrown away: a client that floods costs little, and is seen leaving.
constexpr std::chrono::milliseconds kFloodPause{20};

// What `work` returns, or nothing and what it threw.
template <class Outcome>
awaitable<std::optional<Outcome>> caught(awaitable<Outcome> work, std::exception_ptr& thrown) {
  try {
    co_return co_await std::move(work);
  } catch (...) {
    thrown = std::current_exception();
  }
  co_return std::nullopt;
}

}  // namespace

// Who takes turns at the threads for long work: a tenant, or an address where there are no keys.
std::string Connection::worker_line(const Incoming& incoming) const {
  const Caller& caller = incoming.request.caller;
  return caller.keys ? "tenant " + caller.tenant_name : "address " + client_;
}

// What `work` returns, or throws, on a thread for long work. Cancelled before the work begins, it
// never does; later, the work is waited for, since it uses what belongs to who called this.
template <class Work>
awaitable<std::invoke_result_t<Work>> Connection::on_worker(const Incoming& incoming, Work work) {
  co_await asio::this_coro::throw_if_cancelled(false);
  std::optional<std::invoke_result_t<Work>> outcome;
  std::exception_ptr thrown;
  const auto guarded = [&] {
    try {
      outcome.emplace(work());
    } catch (...) {
      thrown = std::current_exception();
    }
  };
  TextJob job(state_.workers(), worker_line(incoming), guarded, waker());
  while (!job.has_ended()) {
    const asio::cancellation_state cancellation = co_await asio::this_coro::cancellation_state;
    const bool is_unwanted = cancellation.cancelled() != asio::cancellation_type::none;
    if (is_unwanted && job.withdraw()) {
      throw boost::system::system_error(asio::error::operation_aborted);
    }
    co_await wait_for_wake();
  }
  woken_ = true;  // perhaps somebody else called, too
  if (thrown) std::rethrow_exception(thrown);
  co_return std::move(*outcome);
}

// A completion has nobody to tell when the client ends its side; other replies are still read by
// one that only has nothing more to say.
template <class Work>
awaitable<std::optional<std::invoke_result_t<Work>>> Connection::on_worker_while_client_stays(
    const Incoming& incoming, Work work) {
  awaitable<bool> leaving =
      is_completion_path(incoming.request.path) ? client_ends() : connection_breaks();
  awaitable<std::invoke_result_t<Work>> working = on_worker(incoming, std::move(work));
  co_return co_await unless(std::move(leaving), std::move(working));
}

// A completion that the engine refuses has ended with an error.
void Connection::start(Completion& completion) {
  try {
    completion.start(waker());
  } catch (const ApiError& error) {
    completion.abort(error);
  }
}

// A reply, or a completion that was started. What takes long is done on other threads; nothing when
// the client leaves meanwhile.
awaitable<std::optional<Routed>> Connection::begin(Incoming& incoming) {
  const std::size_t body_bytes = incoming.request.body.size();
  std::optional<Routed> routed = co_await route_and_start(incoming);
  std::string().swap(incoming.request.body);  // gives its memory back
  incoming.body_memory = {};
  if (body_bytes >= kLargeRequestBytes) state_.workers().trim_heap_later();
  co_return routed;
}

awaitable<std::optional<Routed>> Connection::route_and_start(Incoming& incoming) {
  HttpRequest& request = incoming.request;
  std::optional<Routed> routed;
  const auto made = [&] { return std::get_if<std::unique_ptr<Completion>>(&*routed); };
  request.may_take_long = request.body.size() > kShortBodyBytes;
  if (!request.may_take_long) {
    try {
      routed = route(request, state_);
    } catch (const TakesLong&) {
      request.may_take_long = true;
    }
  }
  const bool is_large =
      routed && made() != nullptr && (*made())->memory_bytes() >= kLargeRequestBytes;
  if (routed && !is_large) {
    if (made() != nullptr) start(**made());
    co_return routed;
  }
  const std::optional<bool> stayed = co_await on_worker_while_client_stays(incoming, [&] {
    if (!routed) routed = route(request, state_);
    if (made() != nullptr) start(**made());
    return true;
  });
  if (!stayed) co_return std::nullopt;
  co_return routed;
}

// All reply: false when the connection is of no more use.
awaitable<bool> Connection::answer(Incoming& incoming) {
  std::optional<Routed> routed = co_await begin(incoming);
  if (!routed) {
    log_client_gone(incoming.request, state_);
    co_return false;
  }
  if (HttpReply* const reply = std::get_if<HttpReply>(&*routed)) {
    co_return co_await send_reply(incoming, std::move(*reply));
  }
  if (const auto* const deferred = std::get_if<std::unique_ptr<DeferredReply>>(&*routed)) {
    co_return co_await answer_later(incoming, **deferred);
  }
  std::shared_ptr<Completion> completion =
      std::get<std::unique_ptr<Completion>>(*std::move(routed));
  const bool usable = co_await answer_completion(incoming, *completion);
  log_completion(incoming.request, *completion, state_);
  if (completion->memory_bytes() >= kLargeRequestBytes) {
    completion->cancel();  // now, whenever its memory goes
    state_.workers().run(worker_line(incoming), [ended = std::move(completion)] {});
    state_.workers().trim_heap_later();
  }
  co_return usable;
}

// A client that goes away meanwhile has no more wishes: its completion is destroyed, and with that
// cancelled.
awaitable<bool> Connection::answer_completion(Incoming& incoming, Completion& completion) {
  const std::optional<Produced> produced =
      co_await unless(client_ends(), produce(incoming, completion));
  if (!produced || *produced == Produced::kBroken) co_return false;
  if (*produced == Produced::kStream) co_return true;
  co_return co_await send_whole(incoming, completion);
}

awaitable<bool> Connection::send_whole(const Incoming& incoming, const Completion& completion) {
  if (completion.error()) co_return co_await send(incoming, error_reply(*completion.error()));
  if (completion.memory_bytes() <= kShortReplyBytes) {
    co_return co_await send(incoming, completion.reply());
  }
  const std::optional<HttpReply> reply =
      co_await on_worker_while_client_stays(incoming, [&] { return completion.reply(); });
  if (!reply) co_return false;
  co_return co_await send(incoming, *reply);
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
  std::optional<DeferredReply::Make> make =
      co_await unless(connection_breaks(), await_reply(deferred));
  if (!make) co_return false;
  HttpReply reply = (*make)();
  make.reset();  // what it was made of goes before the client has read it
  co_return co_await send_reply(incoming, std::move(reply));
}

awaitable<DeferredReply::Make> Connection::await_reply(DeferredReply& deferred) {
  for (;;) {
    DeferredReply::Make make = deferred.take();
    if (make) co_return make;
    if (state_.phase() == Phase::kStopping) {
      co_return [] { return error_reply(ApiError(503, "the server is stopping", {}, "draining")); };
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

// Exceptions are carried past operator ||, which would go on to wait for the other side: of one
// that waits for the client, for ever. What the side that is cancelled throws for it means nothing.
template <class Outcome>
awaitable<std::optional<Outcome>> Connection::unless(awaitable<bool> leaving,
                                                     awaitable<Outcome> work) {
  std::exception_ptr failed;
  std::exception_ptr blind;
  auto first = co_await (caught(std::move(work), failed) || caught(std::move(leaving), blind));
  const std::exception_ptr& thrown = first.index() == 0 ? failed : blind;
  if (thrown) std::rethrow_exception(thrown);
  if (first.index() != 0) co_return std::nullopt;
  co_return std::move(std::get<0>(first));
}

// For an answer that is also read by who has nothing more to say. What it sends meanwhile waits.
awaitable<bool> Connection::connection_breaks() {
  co_await transport_->socket().async_wait(Transport::Socket::wait_error, kTuple);
  co_return true;
}

// True when the client is gone. What it sends meanwhile is kept: it may be the next request. Of
// more than is kept nothing is: it is read slowly and thrown away, since the client's end is behind
// it, and the connection ends with this reply.
awaitable<bool> Connection::client_ends() {
  asio::steady_timer pause(executor());
  for (;;) {
    const auto room = buffer_.prepare(flooded_ ? kFloodReadBytes : kAheadReadBytes);
    const auto [error, bytes] = co_await transport_->read_some(room);
    // An end that was read once is not told again: the next read would wait for it for ever.
    gone_ = error && error != asio::error::operation_aborted;
    if (error) co_return true;
    buffer_.commit(bytes);
    flooded_ = flooded_ || buffer_.size() > options_.ahead_bytes_max;
    if (!flooded_) continue;
    buffer_.clear();
    pause.expires_after(kFloodPause);
    co_await pause.async_wait(kTuple);
  }
}

}  // namespace pagoda::server
