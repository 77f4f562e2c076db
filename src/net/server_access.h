// The credentials and certificates with which a client reaches a server.
#pragma once

#include <string>

namespace pagoda::net {

struct ServerAccess {
  std::string api_key;    // empty: none
  std::string ca_file;    // certificates that are believed; empty: the system's
  bool insecure = false;  // over https: any certificate is believed
};

}  // namespace pagoda::net
