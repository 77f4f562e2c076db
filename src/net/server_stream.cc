#include "net/server_stream.h"

#include <fmt/format.h>

#include <boost/asio/connect.hpp>
#include <boost/asio/ip/address.hpp>
#include <boost/asio/ssl/host_name_verification.hpp>
#include <stdexcept>

namespace pagoda::net {
namespace {

namespace asio = boost::asio;
namespace ssl = boost::asio::ssl;

// TLS 1.2 and later.
ssl::context trusting(const ServerAccess& access) {
  ssl::context context(ssl::context::tls_client);
  context.set_options(ssl::context::default_workarounds | ssl::context::no_tlsv1 |
                      ssl::context::no_tlsv1_1);
  context.set_verify_mode(access.insecure ? ssl::verify_none : ssl::verify_peer);
  if (access.insecure) return context;
  if (access.ca_file.empty()) {
    context.set_default_verify_paths();
    return context;
  }
  boost::system::error_code error;
  context.load_verify_file(access.ca_file, error);
  if (error) {
    throw std::runtime_error(fmt::format("--ca-file: {}: {}", access.ca_file, error.message()));
  }
  return context;
}

}  // namespace

ServerStream::ServerStream(const Url& url, const ServerAccess& access)
    : tls_(url.tls),
      tls_context_(url.tls ? trusting(access) : ssl::context(ssl::context::tls_client)),
      stream_(context_, tls_context_) {
  asio::ip::tcp::resolver resolver(context_);
  asio::connect(stream_.next_layer(), resolver.resolve(url.host, url.port));
  if (!tls_) return;
  boost::system::error_code not_an_address;
  asio::ip::make_address(url.host, not_an_address);
  if (not_an_address) {  // servers of several names learn which is meant
    std::string name = url.host;
    SSL_ctrl(stream_.native_handle(), SSL_CTRL_SET_TLSEXT_HOSTNAME, TLSEXT_NAMETYPE_host_name,
             name.data());
  }
  if (!access.insecure) stream_.set_verify_callback(ssl::host_name_verification(url.host));
  stream_.handshake(ssl::stream_base::client);
}

}  // namespace pagoda::net
