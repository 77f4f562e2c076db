#include "net/server_stream.h"

#include <fmt/format.h>

#include <boost/asio/connect.hpp>
#include <stdexcept>

#include "net/tls_client.h"

namespace pagoda::net {
namespace {

namespace asio = boost::asio;
namespace ssl = boost::asio::ssl;

ssl::context trusting(const ServerAccess& access) {
  const Result<TlsClient> client =
      TlsClient::load({.verify = !access.insecure, .ca_file = access.ca_file});
  if (!client.ok()) {
    throw std::runtime_error(fmt::format("`ca_file`: {}", client.error().message));
  }
  SSL_CTX_up_ref(client.value().context());  // Asio's context gives it back
  return ssl::context(client.value().context());
}

}  // namespace

ServerStream::ServerStream(const Url& url, const ServerAccess& access)
    : tls_(url.tls),
      tls_context_(url.tls ? trusting(access) : ssl::context(ssl::context::tls_client)),
      stream_(context_, tls_context_) {
  asio::ip::tcp::resolver resolver(context_);
  asio::connect(stream_.next_layer(), resolver.resolve(url.host, url.port));
  if (!tls_) return;
  const Status expected = TlsClient::expect_host(stream_.native_handle(), url.host);
  if (!expected.ok()) throw std::runtime_error(expected.error().message);
  stream_.handshake(ssl::stream_base::client);
}

}  // namespace pagoda::net
