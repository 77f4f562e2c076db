// Parses the target of a request: the forms of RFC 9112 (3.2), names within a path, and parameters
// of a query.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace pagoda::server {

struct RequestTarget {
  std::string path;        // "/v1/models", without the query; "*"
  std::string query = {};  // "a=1&b=2", what follows the first '?'
  // "127.0.0.1:8000" of "http://127.0.0.1:8000/v1/models".
  std::optional<std::string> authority = {};
};

// Accepts a path, a URL of http or https, or the "*" of OPTIONS; returns nothing for anything else.
std::optional<RequestTarget> read_target(std::string_view method, std::string_view target);

// Returns the host of "name", "name:8000", "127.0.0.1:8000" or "[::1]:8000": in lower case, without
// brackets and without the dot that may end a name. Returns nothing for other forms.
std::optional<std::string> host_of(std::string_view authority);

// Returns the value of the last parameter of this name, both without percent-encoding: "2" of
// "a=1&b=2" for "b", empty of "a&b". Returns nothing where the query has none.
std::optional<std::string> query_value(std::string_view query, std::string_view name);

// "a%2Fb" becomes "a/b". Returns nothing where two hexadecimal digits do not follow a %.
std::optional<std::string> percent_decoded(std::string_view text);

}  // namespace pagoda::server
