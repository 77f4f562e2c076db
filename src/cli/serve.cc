// pagoda serve: the OpenAI API over one model.
#include "serve/serve.h"

#include <memory>

#include "cli/commands.h"
#include "cli/options.h"
#include "cli/serve_options.h"

namespace pagoda::cli {
namespace {

constexpr const char* kServeExamples =
    "Examples:\n"
    "  pagoda serve                                   (the default model on 127.0.0.1:8000)\n"
    "  pagoda serve model.gguf --port 9000 -c 8192 --kv-cache-memory-bytes 4GiB\n"
    "  PAGODA_MAX_NUM_SEQS=16 pagoda serve -m model.gguf --served-model-name my-model\n"
    "  pagoda serve --host 0.0.0.0 --api-keys keys.txt --ssl-certfile cert.pem --ssl-keyfile "
    "key.pem\n"
    "SIGTERM or Ctrl-C lets running requests end; a second one stops at once. SIGHUP reads keys "
    "and\n"
    "certificate again.";

Status serve_by(const serve::ServeOptions& options) {
  ASSIGN_OR_RETURN(const server::ServerOptions network, server_options(options));
  ASSIGN_OR_RETURN(engine::BackendOptions sizes, backend_options(options));
  return serve::serve(options, network, std::move(sizes));
}

}  // namespace

void add_serve_command(const CommandSpec& app, int& exit_status) {
  const CommandSpec command = app.add_subcommand("serve", "Serve a model over the OpenAI API");
  const auto options = std::make_shared<serve::ServeOptions>();
  add_serve_options(command, *options);
  command.footer(kServeExamples);
  command.callback([options, &exit_status] {
    const Status outcome = serve_by(*options);
    if (!outcome.ok()) print_error(outcome.error().message);
    exit_status = outcome.ok() ? 0 : 1;
  });
}

}  // namespace pagoda::cli
