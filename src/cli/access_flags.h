// Flags about keys and certificates: of a server, and of commands that ask one.
#pragma once

#include <string>

#include "app/key_source.h"
#include "base/result.h"
#include "cli/flags.h"
#include "net/server_access.h"

namespace pagoda::cli {

// --api-key, --ca-file and --insecure. `whose_key` says what the key is for.
void add_access_options(const CommandSpec& command, net::ServerAccess& access,
                        const std::string& whose_key);

// Who may ask pagoda serve.
void add_access_options(const CommandSpec& command, app::AccessOptions& options);
// An error names a variable of one of these flags that is set and empty.
Status check_access_variables(const app::AccessOptions& options);

}  // namespace pagoda::cli
