// Parses the target of a request: the forms of RFC 9112 (3.2), and names within a path.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace pagoda::server {

struct RequestTarget {
  std::string path;  // "/v1/models", without the query; "*"
  // "127.0.0.1:8000" of "http://127.0.0.1:8000/v1/models".
  std::optional<std::string> authority = {};
};

// Accepts a path, a URL of http or https, or the "*" of OPTIONS; returns nothing for anything else.
std::optional<RequestTarget> read_target(std::string_view method, std::string_view target);

// Returns the host of "name", "name:8000", "127.0.0.1:8000" or "[::1]:8000": in lower case, without
// brackets and without the dot that may end a name. Returns nothing for other forms.
std::optional<std::string> host_of(std::string_view authority);

// "a%2Fb" becomes "a/b". Returns nothing where two hexadecimal digits do not follow a %.
std::optional<std::string> percent_decoded(std::string_view text);

}  // namespace pagoda::server
