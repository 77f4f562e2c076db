// TlsServer holds what a server needs for TLS connections: its certificate and key.
#pragma once

#include <memory>
#include <string>

#include "base/result.h"
#include "net/tls_client.h"

namespace pagoda::net {

// TLS 1.2 and later, with forward secrecy.
class TlsServer {
 public:
  // PEM files; `key` may be empty where the certificate's file has it. Errors name the file.
  static Result<TlsServer> load(const std::string& certificate, const std::string& key);

  // Begins a session over a socket that a client has connected to.
  Result<TlsSession> begin(int socket) const;

 private:
  explicit TlsServer(ssl_ctx_st* context) : context_(context) {}
  std::unique_ptr<ssl_ctx_st, FreeTls> context_;
};

}  // namespace pagoda::net
