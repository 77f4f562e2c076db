// Tells clients on the server's own machine from others. Without keys they alone read the text of
// what is cached.
#pragma once

#include <string>
#include <string_view>

namespace pagoda::server {

// A ClientAddress says which client a connection counts for, and whether that is this machine.
struct ClientAddress {
  std::string text;
  bool is_local = false;
};

// `remote` and `local` are the ends of a connection: numeric addresses without ports.
bool is_local_client(std::string_view remote, std::string_view local);

}  // namespace pagoda::server
