#include "cli/server_access.h"

namespace pagoda::cli {

void add_access_options(CLI::App& command, ServerAccess& access, const std::string& whose_key) {
  command.add_option("--api-key", access.api_key, whose_key);
  auto* const file = command.add_option(
      "--ca-file", access.ca_file,
      "PEM file of the certificates that an https server's is checked against (default: the "
      "system's)");
  command.add_flag("--insecure", access.insecure, "accept any certificate of an https server")
      ->excludes(file);
}

}  // namespace pagoda::cli
