#include "net/tls_client.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include <array>

namespace pagoda::net {
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
  const char* const reason = code == 0 ? nullptr : ERR_reason_error_string(code);
  ERR_clear_error();
  if (code == 0) return "no reason given";
  if (reason != nullptr) return reason;
  ERR_error_string_n(code, text.data(), text.size());
  return text.data();
}

Result<TlsClient> TlsClient::load(const TlsClientOptions& options) {
  TlsClient client(SSL_CTX_new(TLS_client_method()));
  SSL_CTX* const context = client.context_.get();
  if (context == nullptr) return Error{ErrorCode::kIo, "TLS cannot be set up: " + tls_error()};
  SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION);
  SSL_CTX_set_mode(context, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
  if (options.verify) {
    SSL_CTX_set_verify(context, SSL_VERIFY_PEER, nullptr);
    if (options.ca_file.empty()) {
      SSL_CTX_set_default_verify_paths(context);
    } else if (SSL_CTX_load_verify_locations(context, options.ca_file.c_str(), nullptr) != 1) {
      return file_error(options.ca_file, "holds no certificates");
    }
  }
  if (options.certificate.empty()) return client;
  const std::string& key = options.key.empty() ? options.certificate : options.key;
  if (SSL_CTX_use_certificate_chain_file(context, options.certificate.c_str()) != 1) {
    return file_error(options.certificate, "holds no certificate");
  }
  if (SSL_CTX_use_PrivateKey_file(context, key.c_str(), SSL_FILETYPE_PEM) != 1) {
    return file_error(key, "holds no key, or that of another certificate");
  }
  return client;
}

Status TlsClient::expect_host(ssl_st* session, const std::string& host) {
  const bool expected =
      is_address(host) ? X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(session), host.c_str()) == 1
                       : SSL_set1_host(session, host.c_str()) == 1 && names_host(session, host);
  if (!expected) return Error{ErrorCode::kIo, "TLS cannot begin: " + tls_error()};
  return ok_status();
}

Result<TlsSession> TlsClient::begin(int socket, const std::string& host) const {
  TlsSession session(SSL_new(context_.get()));
  if (session == nullptr || SSL_set_fd(session.get(), socket) != 1) {
    return Error{ErrorCode::kIo, "TLS cannot begin: " + tls_error()};
  }
  RETURN_IF_ERROR(expect_host(session.get(), host));
  SSL_set_connect_state(session.get());
  return session;
}

}  // namespace pagoda::net
