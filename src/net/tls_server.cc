#include "net/tls_server.h"

#include <fmt/format.h>
#include <openssl/ssl.h>

namespace pagoda::net {

Result<TlsServer> TlsServer::load(const std::string& certificate, const std::string& key_file) {
  TlsServer server(SSL_CTX_new(TLS_server_method()));
  SSL_CTX* const context = server.context_.get();
  if (context == nullptr || SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION) != 1 ||
      SSL_CTX_set_cipher_list(context, "ECDHE+AESGCM:ECDHE+CHACHA20") != 1) {
    return Error{ErrorCode::kIo, "TLS cannot be set up: " + tls_error()};
  }
  SSL_CTX_set_mode(context, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
  const std::string& key = key_file.empty() ? certificate : key_file;
  if (SSL_CTX_use_certificate_chain_file(context, certificate.c_str()) != 1) {
    return Error{ErrorCode::kIo,
                 fmt::format("{}: holds no certificate: {}", certificate, tls_error())};
  }
  if (SSL_CTX_use_PrivateKey_file(context, key.c_str(), SSL_FILETYPE_PEM) != 1 ||
      SSL_CTX_check_private_key(context) != 1) {
    return Error{ErrorCode::kIo, fmt::format("{}: holds no key, or that of another certificate: {}",
                                             key, tls_error())};
  }
  return server;
}

Result<TlsSession> TlsServer::begin(int socket) const {
  TlsSession session(SSL_new(context_.get()));
  if (session == nullptr || SSL_set_fd(session.get(), socket) != 1) {
    return Error{ErrorCode::kIo, "TLS cannot begin: " + tls_error()};
  }
  SSL_set_accept_state(session.get());
  return session;
}

}  // namespace pagoda::net
