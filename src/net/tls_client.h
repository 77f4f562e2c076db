// TlsClient holds what a TLS connection needs: trusted authorities and our own certificate.
#pragma once

#include <memory>
#include <string>

#include "base/result.h"

struct ssl_ctx_st;
struct ssl_st;

namespace pagoda::net {

struct FreeTls {
  void operator()(ssl_ctx_st* context) const;
  void operator()(ssl_st* session) const;
};
using TlsSession = std::unique_ptr<ssl_st, FreeTls>;

struct TlsClientOptions {
  bool verify = true;            // the server's certificate and name
  std::string ca_file = {};      // who signed the certificate; empty: whom the system trusts
  std::string certificate = {};  // a file: who we are, where the server asks; empty: nobody
  std::string key = {};          // a file: the certificate's key; empty: it is in the same file
};

// TLS 1.2 and later.
class TlsClient {
 public:
  // Errors name the file.
  static Result<TlsClient> load(const TlsClientOptions& options);

  // Begins a session over a socket that is connected or will be; the server must prove to be
  // `host`.
  Result<TlsSession> begin(int socket, const std::string& host) const;

  // The same for a session that someone else made of context().
  static Status expect_host(ssl_st* session, const std::string& host);
  ssl_ctx_st* context() const { return context_.get(); }

 private:
  explicit TlsClient(ssl_ctx_st* context) : context_(context) {}
  std::unique_ptr<ssl_ctx_st, FreeTls> context_;
};

// Returns the last error that OpenSSL reported on this thread.
std::string tls_error();

}  // namespace pagoda::net
