// How a command reaches a running server, as its options say.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

namespace pagoda::cli {

struct ServerAccess {
  std::string api_key;    // empty: none
  std::string ca_file;    // certificates that are believed; empty: the system's
  bool insecure = false;  // over https: any certificate is believed
};

// --api-key, --ca-file and --insecure. `whose_key` says what the key is for.
void add_access_options(CLI::App& command, ServerAccess& access, const std::string& whose_key);

}  // namespace pagoda::cli
