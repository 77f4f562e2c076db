// The length of an output as a request names it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace pagoda::server {

struct OutputLength {
  std::optional<std::uint32_t> tokens;
  std::string field;  // the body's field, for errors: "max_tokens"
};

}  // namespace pagoda::server
