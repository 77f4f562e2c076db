// What a request is for: the forms of a target that RFC 9112 (3.2) knows, and names within a path.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace pagoda::server {

struct RequestTarget {
  std::string path;                           // "/v1/models", without the query; "*"
  std::optional<std::string> authority = {};  // of "http://127.0.0.1:8000/v1/models"
};

// A path, a URL of http or https, or the "*" of OPTIONS; nothing for anything else.
std::optional<RequestTarget> read_target(std::string_view method, std::string_view target);

// The host of "name", "name:8000", "127.0.0.1:8000" or "[::1]:8000": in small letters, without
// brackets and without the dot that may end a name. Nothing when it is none of these.
std::optional<std::string> host_of(std::string_view authority);

// "a%2Fb" is "a/b". Nothing where a % is not followed by two hexadecimal digits.
std::optional<std::string> percent_decoded(std::string_view text);

}  // namespace pagoda::server
