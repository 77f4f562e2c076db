// How bytes travel: over TCP as they are, or within TLS.
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

  // Before anything else: TLS agrees on keys.
  virtual boost::asio::awaitable<Outcome> open() = 0;
  virtual boost::asio::awaitable<Outcome> read_some(boost::asio::mutable_buffer room) = 0;
  // As many from the front as can go at once, without waiting; how many. That may be none: write()
  // takes the rest, and tells what is wrong.
  virtual std::size_t write_now(boost::asio::const_buffer bytes) = 0;
  // All of them.
  virtual boost::asio::awaitable<Outcome> write(boost::asio::const_buffer bytes) = 0;
  // After the last bytes: the client learns that they were the last.
  virtual boost::asio::awaitable<Outcome> finish() = 0;

  virtual Socket& socket() = 0;
};

// A certificate and its key. Immutable: files that are read again make another.
class TlsIdentity;

// An error names the file.
Result<std::shared_ptr<TlsIdentity>> load_tls_identity(const TlsFiles& files);

// TLS where there is an identity.
std::unique_ptr<Transport> make_transport(Transport::Socket socket,
                                          std::shared_ptr<TlsIdentity> identity);

}  // namespace pagoda::server
