// TlsClient holds what a TLS connection needs: trusted authorities and our own certificate.
#pragma once

#include <memory>
#include <string>

#include "base/result.h"
#include "store/remote/remote_options.h"

struct ssl_ctx_st;
struct ssl_st;

namespace pagoda::store {

struct FreeTls {
  void operator()(ssl_ctx_st* context) const;
  void operator()(ssl_st* session) const;
};
using TlsSession = std::unique_ptr<ssl_st, FreeTls>;

class TlsClient {
 public:
  // Errors name the file.
  static Result<TlsClient> load(const RemoteOptions& options);

  // Begins a session over a socket that is connected or will be; the server must prove to be
  // `host`.
  Result<TlsSession> begin(int socket, const std::string& host) const;

 private:
  explicit TlsClient(ssl_ctx_st* context) : context_(context) {}
  std::unique_ptr<ssl_ctx_st, FreeTls> context_;
};

// Returns the last error that OpenSSL reported on this thread.
std::string tls_error();

}  // namespace pagoda::store
