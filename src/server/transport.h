// A connection's byte stream: plain TCP, or TLS over TCP.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <memory>
#include <tuple>

#include "base/result.h"
#include "server/server_options.h"

namespace pagoda::server {

class Transport {
 public:
  using Socket = boost::asio::ip::tcp::socket;
  using Outcome = std::tuple<boost::system::error_code, std::size_t>;

  virtual ~Transport() = default;

  // Call this first: TLS makes its handshake here.
  virtual boost::asio::awaitable<Outcome> open() = 0;
  virtual boost::asio::awaitable<Outcome> read_some(boost::asio::mutable_buffer room) = 0;
  // Writes as many bytes from the front as can go without waiting, and returns how many. That may
  // be none: write() takes the rest and reports errors.
  virtual std::size_t write_now(boost::asio::const_buffer bytes) = 0;
  // Writes all bytes.
  virtual boost::asio::awaitable<Outcome> write(boost::asio::const_buffer bytes) = 0;
  // Call this after the last bytes: the client learns that the stream is complete.
  virtual boost::asio::awaitable<Outcome> finish() = 0;

  virtual Socket& socket() = 0;
};

// A certificate and its key. Immutable: reading the files again makes another one.
class TlsIdentity;

// An error names the file.
Result<std::shared_ptr<TlsIdentity>> load_tls_identity(const TlsFiles& files);

// Returns a TLS transport when there is an identity, else plain TCP.
std::unique_ptr<Transport> make_transport(Transport::Socket socket,
                                          std::shared_ptr<TlsIdentity> identity);

}  // namespace pagoda::server
