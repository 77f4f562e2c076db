// Where a server is.
#pragma once

#include <string>

#include "base/result.h"

namespace pagoda::net {

struct Url {
  bool tls = false;
  std::string host;
  std::string port;  // 80, or 443 with TLS, where not said
  std::string path;  // before /v1, without a last slash

  const char* scheme() const { return tls ? "https" : "http"; }
};

// http[s]://host[:port][/path][/v1]; of this machine (localhost, 127.0.0.1, [::1]) the scheme may
// be left out. Errors begin with `argument`, which it was given as: "URL", or
// an option's field in backticks.
Result<Url> parse_url(const std::string& given, const std::string& argument);

}  // namespace pagoda::net
