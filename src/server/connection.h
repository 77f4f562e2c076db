// One client's connection: reads requests one after another, answers each, notices when the client
// goes away. A coroutine on a strand of its own.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <memory>
#include <optional>
#include <string>

#include "server/completion.h"
#include "server/http_reply.h"
#include "server/server_options.h"
#include "server/server_state.h"

namespace pagoda::server {

class Connection : public std::enable_shared_from_this<Connection> {
 public:
  using Socket = boost::asio::ip::tcp::socket;

  // The socket's executor is the strand. State and options must outlive the connection.
  Connection(Socket socket, const ServerState& state, const ConnectionOptions& options);

  // Until the client leaves, breaks a rule, or the server stops.
  boost::asio::awaitable<void> run();

  // The server stops: an idle connection closes, a completion is told. Any thread.
  void stop();
  // At once. Any thread.
  void close();

 private:
  // A request and what its reply needs to know of it.
  struct Incoming {
    HttpRequest request;
    unsigned version = 11;
    bool keep_alive = false;
  };
  // What came instead of a request: an error to send before closing, or nothing to say.
  struct Refused {
    std::optional<HttpReply> reply;
  };
  using Read = std::variant<Incoming, Refused>;

  boost::asio::awaitable<bool> wait_for_bytes();
  boost::asio::awaitable<Read> read_request();
  boost::asio::awaitable<bool> answer(const Incoming& incoming);
  boost::asio::awaitable<bool> answer_completion(const Incoming& incoming, Completion& completion);
  boost::asio::awaitable<bool> produce(const Incoming& incoming, Completion& completion);
  boost::asio::awaitable<bool> wait_for_wake();
  boost::asio::awaitable<void> watch_client();
  boost::asio::awaitable<bool> send(const Incoming& incoming, const HttpReply& reply);
  boost::asio::awaitable<bool> send_stream_header(const Incoming& incoming);
  boost::asio::awaitable<bool> send_stream(const Incoming& incoming, std::string bytes, bool last);
  boost::asio::awaitable<void> linger();

  bool keeps_alive(const Incoming& incoming) const;
  std::function<void()> waker();
  void wake();

  Socket socket_;
  const ServerState& state_;
  const ConnectionOptions& options_;
  boost::beast::flat_buffer buffer_;  // bytes read and not yet parsed
  boost::asio::steady_timer alarm_;   // waits for wake()
  bool woken_ = false;
  bool idle_ = false;  // between requests
};

}  // namespace pagoda::server
