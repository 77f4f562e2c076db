// How a request is answered: long work runs on other threads, and the connection notices meanwhile
// when its client leaves.
#include <boost/asio/cancellation_state.hpp>
#include <boost/asio/experimental/awaitable_operators.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/system/system_error.hpp>
#include <chrono>
#include <exception>
#include <utility>

#include "server/api/chat_prompt.h"
#include "server/api_error.h"
#include "server/as_tuple.h"
#include "server/completion_log.h"
#include "server/completion_route.h"
#include "server/connection.h"
#include "server/retry_after.h"
#include "server/text_job.h"

namespace pagoda::server {
namespace {

namespace asio = boost::asio;
using asio::awaitable;
using asio::experimental::awaitable_operators::operator||;

constexpr std::size_t kAheadReadBytes = 4 << 10;
constexpr std::size_t kFloodReadBytes = 64 << 10;
// Bodies up to this size are parsed on the connection's thread, which takes a few milliseconds at
// most: all connections share these threads.
constexpr std::size_t kShortBodyBytes = 16 << 10;
// The memory for reading bodies up to this size is not counted, unless reading one takes long.
constexpr std::size_t kUncountedBodyBytes = 64 << 10;
// Requests with at least this much memory start and end on a text worker; after them, and after
// bodies of this size, the heap is trimmed.
constexpr std::uint64_t kLargeRequestBytes = 1 << 20;
// Whole replies up to this size are made on the connection's thread, which takes some milliseconds.
constexpr std::uint64_t kShortReplyBytes = 1 << 20;
// The pause between two reads of discarded bytes: a client that floods costs little, and its
// leaving is still noticed.
constexpr std::chrono::milliseconds kFloodPause{20};

// Returns the result of `work`, or nothing with its exception in `thrown`.
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

// Returns the client whose work queues together at the text workers: a tenant, or an address where
// there are no keys.
std::string Connection::worker_line(const Incoming& incoming) const {
  const Caller& caller = incoming.request.caller;
  return caller.keys ? "tenant " + caller.tenant_name : "address " + client_.text;
}

// Runs `work` on a text worker and returns or throws its result. Cancelled before the work begins,
// it never begins; later, the coroutine waits for the work, which uses objects of the caller.
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
  woken_ = true;  // another caller may have set it, too
  if (thrown) std::rethrow_exception(thrown);
  co_return std::move(*outcome);
}

// True once nobody wants the reply. A completion is unwanted when the client closes its side; other
// replies are still sent, because the client may only have finished sending.
awaitable<bool> Connection::client_leaves(const Incoming& incoming) {
  return is_completion_path(incoming.request.path) ? client_ends() : connection_breaks();
}

template <class Work>
awaitable<std::optional<std::invoke_result_t<Work>>> Connection::on_worker_while_client_stays(
    const Incoming& incoming, Work work) {
  awaitable<bool> leaving = client_leaves(incoming);
  awaitable<std::invoke_result_t<Work>> working = on_worker(incoming, std::move(work));
  co_return co_await unless(std::move(leaving), std::move(working));
}

// A completion that the engine refuses ends with an error.
void Connection::start(Completion& completion) {
  try {
    completion.start(waker());
  } catch (const ApiError& error) {
    completion.abort(error);
  }
}

// Returns a reply or a started completion; nothing when the client leaves meanwhile. Long work runs
// on other threads.
awaitable<std::optional<Routed>> Connection::begin(Incoming& incoming) {
  const std::size_t body_bytes = incoming.request.body.size();
  std::optional<Routed> routed = co_await route_and_start(incoming);
  std::string().swap(incoming.request.body);  // frees the body's memory
  incoming.body_memory = {};
  if (body_bytes >= kLargeRequestBytes) state_.workers().trim_heap_later();
  co_return routed;
}

awaitable<std::optional<Routed>> Connection::route_and_start(Incoming& incoming) {
  HttpRequest& request = incoming.request;
  std::optional<Routed> routed;
  const auto made = [&] { return std::get_if<std::unique_ptr<Completion>>(&*routed); };
  request.may_take_long = request.body.size() > kUncountedBodyBytes;
  const auto try_route = [&] {
    try {
      routed = route(request, state_);
    } catch (const TakesLong&) {
      request.may_take_long = true;
    }
  };
  if (request.body.size() <= kShortBodyBytes) try_route();
  const bool is_large =
      routed && made() != nullptr && (*made())->text_bytes() >= kLargeRequestBytes;
  if (routed && !is_large) {
    if (made() != nullptr) start(**made());
    co_return routed;
  }
  const std::optional<bool> stayed = co_await on_worker_while_client_stays(incoming, [&] {
    if (!routed && !request.may_take_long) try_route();
    if (!routed) routed = route(request, state_);
    if (made() != nullptr) start(**made());
    return true;
  });
  if (!stayed) co_return std::nullopt;
  co_return routed;
}

// Sends any kind of reply. Returns false when the connection cannot be used any more.
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
  if (completion->text_bytes() >= kLargeRequestBytes) {
    completion->cancel();  // cancels now, although its memory may be freed later
    state_.workers().run(worker_line(incoming), [ended = std::move(completion)] {});
    state_.workers().trim_heap_later();
  }
  co_return usable;
}

// When the client leaves meanwhile, the completion is destroyed, which cancels its sequences.
awaitable<bool> Connection::answer_completion(Incoming& incoming, Completion& completion) {
  incoming.headers = completion_headers(completion);
  awaitable<bool> leaving = client_leaves(incoming);
  awaitable<Produced> producing = produce(incoming, completion);
  const std::optional<Produced> produced =
      co_await unless(std::move(leaving), std::move(producing));
  if (!produced || *produced == Produced::kBroken) co_return false;
  if (*produced == Produced::kStream) co_return true;
  co_return co_await send_whole(incoming, completion);
}

awaitable<bool> Connection::send_whole(const Incoming& incoming, const Completion& completion) {
  if (completion.error()) {
    HttpReply refusal = error_reply(*completion.error(), style_of(incoming.request.path));
    add_retry_after(state_, incoming.request.caller,
                    completion.log_entry(false).prompt_tokens.value_or(0), refusal);
    co_return co_await send(incoming, refusal);
  }
  if (completion.text_bytes() <= kShortReplyBytes && !completion.reply_takes_long()) {
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
    // The phase is read first, so that the output of a drained engine is taken before the rest is
    // aborted.
    const bool stopping = state_.phase() == Phase::kStopping;
    std::string bytes = completion.take();
    if (stopping) {
      bytes += completion.abort(server_stops());
    }
    if (!woken && completion.streams() && bytes.empty()) bytes = completion.keep_alive();
    if (bytes.empty()) continue;
    const bool begun = streaming || co_await send_stream_header(incoming, completion.stream_type());
    if (!begun) co_return Produced::kBroken;
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
  make.reset();  // frees the reply's source before the client has read the reply
  co_return co_await send_reply(incoming, std::move(reply));
}

awaitable<DeferredReply::Make> Connection::await_reply(DeferredReply& deferred) {
  for (;;) {
    DeferredReply::Make make = deferred.take();
    if (make) co_return make;
    if (state_.phase() == Phase::kStopping) {
      co_return [] { return error_reply(server_stops()); };
    }
    co_await wait_for_wake();
  }
}

// Returns false when no wake came for as long as a stream may be silent.
awaitable<bool> Connection::wait_for_wake() {
  if (!woken_) {
    alarm_.expires_after(options_.keep_alive);
    co_await alarm_.async_wait(kAsTuple);
  }
  co_return std::exchange(woken_, false);
}

// Carries exceptions past operator ||, which would go on to wait for the other side: for ever,
// where that side waits for the client. Exceptions of the cancelled side are dropped.
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

// Waits until the connection breaks, for a reply that a client which closed its side still reads.
// Bytes that the client sends meanwhile stay in the socket.
awaitable<bool> Connection::connection_breaks() {
  co_await transport_->socket().async_wait(Transport::Socket::wait_error, kAsTuple);
  co_return true;
}

// Returns true when the client has left. Bytes that it sends meanwhile are kept, because they may
// be the next request. Beyond ahead_bytes_max they are read slowly and discarded, since the
// client's end comes after them, and the connection closes after this reply.
awaitable<bool> Connection::client_ends() {
  asio::steady_timer pause(executor());
  for (;;) {
    const auto room = buffer_.prepare(flooded_ ? kFloodReadBytes : kAheadReadBytes);
    const auto [error, bytes] = co_await transport_->read_some(room);
    // The end of the stream is reported once: another read would wait for ever.
    gone_ = error && error != asio::error::operation_aborted;
    if (error) co_return true;
    buffer_.commit(bytes);
    flooded_ = flooded_ || buffer_.size() > options_.ahead_bytes_max;
    if (!flooded_) continue;
    buffer_.clear();
    pause.expires_after(kFloodPause);
    co_await pause.async_wait(kAsTuple);
  }
}

}  // namespace pagoda::server
