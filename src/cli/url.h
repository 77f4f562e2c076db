// Where a server is.
#pragma once

#include <string>

#include "base/result.h"

namespace pagoda::cli {

struct Url {
  std::string host;
  std::string port = "80";
  std::string path;  // before /v1, without a last slash
};

// http://host[:port][/path][/v1]. Errors name the argument that it was given as.
Result<Url> parse_url(const std::string& text, const std::string& argument);

}  // namespace pagoda::cli
