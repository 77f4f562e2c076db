#include "server/transport.h"

#include <fmt/format.h>

#include <boost/asio/ssl.hpp>
#include <boost/asio/write.hpp>

#include "server/as_tuple.h"

namespace pagoda::server {

namespace asio = boost::asio;
namespace ssl = asio::ssl;
using asio::awaitable;
using boost::system::error_code;

class TlsIdentity {
 public:
  ssl::context& context() { return context_; }

 private:
  ssl::context context_{ssl::context::tls_server};
};

namespace {

// The ciphers of TLS 1.2 have forward secrecy, which static RSA lacks, and authenticated
// encryption, which CBC lacks. TLS 1.3 has no others.
constexpr const char* kCiphers = "ECDHE+AESGCM:ECDHE+CHACHA20";

class TcpTransport final : public Transport {
 public:
  explicit TcpTransport(Socket socket) : socket_(std::move(socket)) {
    error_code ignored;
    socket_.non_blocking(true, ignored);  // write_now() needs it
  }

  awaitable<Outcome> open() override { co_return Outcome(); }
  awaitable<Outcome> read_some(asio::mutable_buffer room) override {
    co_return co_await socket_.async_read_some(room, kAsTuple);
  }
  std::size_t write_now(asio::const_buffer bytes) override {
    error_code ignored;
    return socket_.send(bytes, 0, ignored);
  }
  awaitable<Outcome> write(asio::const_buffer bytes) override {
    co_return co_await asio::async_write(socket_, bytes, kAsTuple);
  }
  awaitable<Outcome> finish() override {
    error_code error;
    socket_.shutdown(Socket::shutdown_send, error);
    co_return Outcome(error, 0);
  }
  Socket& socket() override { return socket_; }

 private:
  Socket socket_;
};

class TlsTransport final : public Transport {
 public:
  TlsTransport(Socket socket, std::shared_ptr<TlsIdentity> identity)
      : identity_(std::move(identity)), stream_(std::move(socket), identity_->context()) {}

  awaitable<Outcome> open() override {
    const auto [error] = co_await stream_.async_handshake(ssl::stream_base::server, kAsTuple);
    co_return Outcome(error, 0);
  }
  awaitable<Outcome> read_some(asio::mutable_buffer room) override {
    co_return co_await stream_.async_read_some(room, kAsTuple);
  }
  // A TLS record that was begun must be finished, so that this begins none.
  std::size_t write_now(asio::const_buffer /*bytes*/) override { return 0; }
  awaitable<Outcome> write(asio::const_buffer bytes) override {
    co_return co_await asio::async_write(stream_, bytes, kAsTuple);
  }
  awaitable<Outcome> finish() override {
    const auto [error] = co_await stream_.async_shutdown(kAsTuple);
    co_return Outcome(error, 0);
  }
  Socket& socket() override { return stream_.next_layer(); }

 private:
  std::shared_ptr<TlsIdentity> identity_;  // new connections may use another identity
  ssl::stream<Socket> stream_;
};

Status failed(const std::string& path, const error_code& error) {
  if (!error) return ok_status();
  return Error{ErrorCode::kIo, fmt::format("{}: {}", path, error.message())};
}

}  // namespace

Result<std::shared_ptr<TlsIdentity>> load_tls_identity(const TlsFiles& files) {
  auto identity = std::make_shared<TlsIdentity>();
  ssl::context& context = identity->context();
  error_code error;
  context.set_options(ssl::context::default_workarounds | ssl::context::no_compression, error);
  if (SSL_CTX_set_min_proto_version(context.native_handle(), TLS1_2_VERSION) != 1 ||
      SSL_CTX_set_cipher_list(context.native_handle(), kCiphers) != 1) {
    return Error{ErrorCode::kUnsupported, "OpenSSL has no ciphers that are good enough"};
  }
  context.use_certificate_chain_file(files.certificate, error);
  RETURN_IF_ERROR(failed(files.certificate, error));
  context.use_private_key_file(files.key, ssl::context::pem, error);
  RETURN_IF_ERROR(failed(files.key, error));
  if (SSL_CTX_check_private_key(context.native_handle()) != 1) {
    return Error{ErrorCode::kCorrupt, fmt::format("{}: is not the key of the certificate in {}",
                                                  files.key, files.certificate)};
  }
  return identity;
}

std::unique_ptr<Transport> make_transport(Transport::Socket socket,
                                          std::shared_ptr<TlsIdentity> identity) {
  if (!identity) return std::make_unique<TcpTransport>(std::move(socket));
  return std::make_unique<TlsTransport>(std::move(socket), std::move(identity));
}

}  // namespace pagoda::server
