// How replies name an option of the server. The server knows its fields; who starts it knows how
// people set them: as flags, or in a file.
#pragma once

#include <functional>
#include <string>
#include <string_view>

namespace pagoda::server {

// Returns the words for a field and the value that it should have (empty: none is named), which
// stand in a sentence as its subject: "--allowed-hosts my-name". Any thread may call it.
using OptionName = std::function<std::string(std::string_view field, std::string_view value)>;

// "the server option allowed_hosts=my-name"
inline std::string plain_option_name(std::string_view field, std::string_view value) {
  std::string name = "the server option ";
  name += field;
  if (!value.empty()) name += '=';
  return name += value;
}

}  // namespace pagoda::server
