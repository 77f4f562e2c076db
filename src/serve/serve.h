// A model, served until a signal ends it.
#pragma once

#include "base/result.h"
#include "engine/backends/backend_options.h"
#include "serve/serve_options.h"
#include "server/server_options.h"

namespace pagoda::serve {

// Listens, loads the model, serves, and lets running requests end once a signal asks for it.
// `network` and `sizes` are what the options mean for the server and for the backend.
Status serve(const ServeOptions& options, const server::ServerOptions& network,
             engine::BackendOptions sizes);

}  // namespace pagoda::serve
