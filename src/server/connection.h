// One client's connection: it reads requests one after another, replies to each, and notices when
// the client leaves. It is a coroutine on a strand of its own.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <variant>

#include "server/access/local_client.h"
#include "server/completion.h"
#include "server/deferred_reply.h"
#include "server/http_reply.h"
#include "server/request_reader.h"
#include "server/router.h"
#include "server/server_options.h"
#include "server/server_state.h"
#include "server/transport.h"

namespace pagoda::server {

class Connection : public std::enable_shared_from_this<Connection> {
 public:
  // The socket's executor is the strand. `state` and `options` must outlive the connection.
  Connection(std::unique_ptr<Transport> transport, ClientAddress client, const ServerState& state,
             const ConnectionOptions& options);
  ~Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  // Runs until the client leaves, the client breaks the protocol, or the server stops.
  boost::asio::awaitable<void> run();

  // Closes an idle connection and aborts a running completion. Any thread may call this.
  void stop();
  // Closes the socket at once. Any thread may call this.
  void close();

 private:
  // A request, with the facts that its reply depends on.
  struct Incoming {
    HttpRequest request;
    unsigned version = 11;
    bool keep_alive = false;
    ByteBudget::Hold body_memory = {};
    HeaderList headers = {};  // of the reply, besides those of every reply
  };
  // An error to send before closing, instead of a request; empty when nothing is sent.
  struct Refused {
    std::optional<HttpReply> reply;
  };
  // A request and its reply are followed by another request, an orderly close, or a broken
  // connection.
  enum class Next : std::uint8_t { kRequest, kEnd, kBroken };
  // How far a completion got: its stream was sent to the end, its whole reply is still to be sent,
  // or the connection broke.
  enum class Produced : std::uint8_t { kStream, kWhole, kBroken };

  // Returns the operation's outcome, or nothing when it took longer than `limit` and was cancelled.
  // One operation at a time.
  boost::asio::awaitable<std::optional<Transport::Outcome>> within(
      std::chrono::steady_clock::duration limit,
      boost::asio::awaitable<Transport::Outcome> operation);
  boost::asio::awaitable<bool> wait_for_bytes();
  boost::asio::awaitable<Next> serve_request();
  boost::asio::awaitable<Next> read_and_answer(Incoming& incoming);
  // `incoming` holds the parts of the request that are known so far, also when this throws.
  boost::asio::awaitable<std::optional<Refused>> read_request(Incoming& incoming);
  boost::asio::awaitable<std::optional<HttpReply>> take_head(const Incoming& incoming,
                                                             const RequestReader& reader);
  template <class Work>
  boost::asio::awaitable<std::invoke_result_t<Work>> on_worker(const Incoming& incoming, Work work);
  // Runs `work` like on_worker; returns nothing when the client leaves before it ends.
  template <class Work>
  boost::asio::awaitable<std::optional<std::invoke_result_t<Work>>> on_worker_while_client_stays(
      const Incoming& incoming, Work work);
  void start(Completion& completion);
  boost::asio::awaitable<std::optional<Routed>> begin(Incoming& incoming);
  boost::asio::awaitable<std::optional<Routed>> route_and_start(Incoming& incoming);
  boost::asio::awaitable<bool> answer(Incoming& incoming);
  boost::asio::awaitable<bool> answer_completion(Incoming& incoming, Completion& completion);
  boost::asio::awaitable<Produced> produce(Incoming& incoming, Completion& completion);
  boost::asio::awaitable<bool> send_whole(const Incoming& incoming, const Completion& completion);
  boost::asio::awaitable<bool> send_reply(const Incoming& incoming, HttpReply reply);
  boost::asio::awaitable<bool> answer_later(const Incoming& incoming, DeferredReply& deferred);
  boost::asio::awaitable<DeferredReply::Make> await_reply(DeferredReply& deferred);
  boost::asio::awaitable<bool> wait_for_wake();
  // Returns or throws the result of `work`; returns nothing when `leaving` ends first.
  template <class Outcome>
  static boost::asio::awaitable<std::optional<Outcome>> unless(
      boost::asio::awaitable<bool> leaving, boost::asio::awaitable<Outcome> work);
  boost::asio::awaitable<bool> client_leaves(const Incoming& incoming);
  boost::asio::awaitable<bool> client_ends();
  boost::asio::awaitable<bool> connection_breaks();
  boost::asio::awaitable<bool> send(const Incoming& incoming, const HttpReply& reply);
  boost::asio::awaitable<bool> write(std::string_view bytes);
  boost::asio::awaitable<bool> send_stream_header(Incoming& incoming,
                                                  std::string_view content_type);
  boost::asio::awaitable<bool> send_stream(const Incoming& incoming, std::string bytes, bool last);
  boost::asio::awaitable<void> linger();

  std::string header_text(const Incoming& incoming, const HttpReply& reply,
                          const std::string& framing, bool keep_alive) const;
  Incoming incoming_of(HttpRequest request, const RequestReader& reader) const;
  static Refused refusal_of(const RequestReader& reader, Incoming& incoming);
  bool keeps_alive(const Incoming& incoming) const;
  boost::asio::any_io_executor executor() { return transport_->socket().get_executor(); }
  std::string worker_line(const Incoming& incoming) const;
  std::function<void()> waker();
  void wake();

  std::unique_ptr<Transport> transport_;
  ClientAddress client_;
  const ServerState& state_;
  const ConnectionOptions& options_;
  boost::beast::flat_buffer buffer_;    // bytes read and not yet parsed
  boost::asio::steady_timer deadline_;  // limits the operation that is within()
  // Counts operations, so that the deadline of one cannot cancel another.
  std::uint64_t operations_ = 0;
  bool late_ = false;                // the deadline has passed
  boost::asio::steady_timer alarm_;  // waits for wake()
  bool woken_ = false;
  bool idle_ = false;         // between requests
  bool reply_begun_ = false;  // bytes of the reply may have been sent
  bool gone_ = false;         // the client closed its side while its request was answered
  bool flooded_ = false;      // the client sent more ahead than ahead_bytes_max
};

}  // namespace pagoda::server
