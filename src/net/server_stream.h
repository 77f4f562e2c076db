// A connection to a server, over TCP or within TLS: a SyncStream for Beast.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <boost/system/system_error.hpp>

#include "net/server_access.h"
#include "net/url.h"

namespace pagoda::net {

class ServerStream {
 public:
  using error_code = boost::system::error_code;

  // Connects; over https the server proves that it is the URL's host. Throws
  // boost::system::system_error, and std::runtime_error that names a file which cannot be used.
  ServerStream(const Url& url, const ServerAccess& access);

  template <class Buffers>
  std::size_t read_some(const Buffers& buffers, error_code& error) {
    return tls_ ? stream_.read_some(buffers, error)
                : stream_.next_layer().read_some(buffers, error);
  }
  template <class Buffers>
  std::size_t write_some(const Buffers& buffers, error_code& error) {
    return tls_ ? stream_.write_some(buffers, error)
                : stream_.next_layer().write_some(buffers, error);
  }
  template <class Buffers>
  std::size_t read_some(const Buffers& buffers) {
    return or_throw([&](error_code& error) { return read_some(buffers, error); });
  }
  template <class Buffers>
  std::size_t write_some(const Buffers& buffers) {
    return or_throw([&](error_code& error) { return write_some(buffers, error); });
  }

 private:
  template <class Operation>
  static std::size_t or_throw(Operation&& operation) {
    error_code error;
    const std::size_t bytes = operation(error);
    if (error) throw boost::system::system_error(error);
    return bytes;
  }

  const bool tls_;
  boost::asio::io_context context_;
  boost::asio::ssl::context tls_context_;
  boost::asio::ssl::stream<boost::asio::ip::tcp::socket> stream_;
};

}  // namespace pagoda::net
