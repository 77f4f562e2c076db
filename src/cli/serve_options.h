// The flags of pagoda serve, and their meaning for the server and its backend.
#pragma once

#include "base/result.h"
#include "cli/flags.h"
#include "engine/backends/backend_options.h"
#include "serve/serve_options.h"
#include "server/server_options.h"

namespace pagoda::cli {

void add_serve_options(const CommandSpec& command, serve::ServeOptions& options);

// Errors name the flag and what it takes.
Result<server::ServerOptions> server_options(const serve::ServeOptions& options);
Result<engine::BackendOptions> backend_options(const serve::ServeOptions& options);

}  // namespace pagoda::cli
