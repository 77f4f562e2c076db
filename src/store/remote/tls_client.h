// What a connection over TLS needs: whom we trust, who we are.
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

  // Over a socket that is connected or will be; the server must prove to be `host`.
  Result<TlsSession> begin(int socket, const std::string& host) const;

 private:
  explicit TlsClient(ssl_ctx_st* context) : context_(context) {}
  std::unique_ptr<ssl_ctx_st, FreeTls> context_;
};

// What OpenSSL said last, of this thread.
std::string tls_error();

}  // namespace pagoda::store
