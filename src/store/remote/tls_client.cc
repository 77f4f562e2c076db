#include "store/remote/tls_client.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include <array>

namespace pagoda::store {
namespace {

Error file_error(const std::string& path, const char* what) {
  return {ErrorCode::kIo, fmt::format("{}: {}: {}", path, what, tls_error())};
}

bool is_address(const std::string& host) {
  std::array<unsigned char, 16> address;
  return inet_pton(AF_INET, host.c_str(), address.data()) == 1 ||
         inet_pton(AF_INET6, host.c_str(), address.data()) == 1;
}

// Names the host for servers with several names. OpenSSL's macro has a cast that our flags refuse.
bool names_host(SSL* session, std::string host) {
  return SSL_ctrl(session, SSL_CTRL_SET_TLSEXT_HOSTNAME, TLSEXT_NAMETYPE_host_name, host.data()) ==
         1;
}

}  // namespace

void FreeTls::operator()(ssl_ctx_st* context) const { SSL_CTX_free(context); }
void FreeTls::operator()(ssl_st* session) const { SSL_free(session); }

std::string tls_error() {
  std::array<char, 256> text = {};
  const unsigned long code = ERR_get_error();
  ERR_clear_error();
  if (code == 0) return "no reason given";
  ERR_error_string_n(code, text.data(), text.size());
  return text.data();
}

Result<TlsClient> TlsClient::load(const RemoteOptions& options) {
  TlsClient client(SSL_CTX_new(TLS_client_method()));
  SSL_CTX* const context = client.context_.get();
  if (context == nullptr) return Error{ErrorCode::kIo, "TLS cannot be set up: " + tls_error()};
  SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION);
  SSL_CTX_set_verify(context, SSL_VERIFY_PEER, nullptr);
  SSL_CTX_set_mode(context, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
  const std::string& authority = options.tls_ca_file;
  if (authority.empty()) {
    SSL_CTX_set_default_verify_paths(context);
  } else if (SSL_CTX_load_verify_locations(context, authority.c_str(), nullptr) != 1) {
    return file_error(authority, "holds no certificates");
  }
  if (options.tls_certificate_file.empty()) return client;
  const std::string& certificate = options.tls_certificate_file;
  const std::string& key = options.tls_key_file.empty() ? certificate : options.tls_key_file;
  if (SSL_CTX_use_certificate_chain_file(context, certificate.c_str()) != 1) {
    return file_error(certificate, "holds no certificate");
  }
  if (SSL_CTX_use_PrivateKey_file(context, key.c_str(), SSL_FILETYPE_PEM) != 1) {
    return file_error(key, "holds no key, or that of another certificate");
  }
  return client;
}

Result<TlsSession> TlsClient::begin(int socket, const std::string& host) const {
  TlsSession session(SSL_new(context_.get()));
  SSL* const ssl = session.get();
  const bool address = is_address(host);
  const bool ready =
      ssl != nullptr && SSL_set_fd(ssl, socket) == 1 &&
      (address ? X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl), host.c_str()) == 1
               : SSL_set1_host(ssl, host.c_str()) == 1 && names_host(ssl, host));
  if (!ready) return Error{ErrorCode::kIo, "TLS cannot begin: " + tls_error()};
  SSL_set_connect_state(ssl);
  return session;
}

}  // namespace pagoda::store
