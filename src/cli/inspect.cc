// pagoda inspect: looks at a model file without loading it, a running server or a disk store.
#include <fmt/format.h>

#include <memory>

#include "app/loaded_model.h"
#include "cli/access_flags.h"
#include "cli/commands.h"
#include "cli/options.h"
#include "inspect/kernel_report.h"
#include "inspect/model_report.h"
#include "inspect/server_report.h"
#include "inspect/store_report.h"

namespace pagoda::cli {
namespace {

constexpr const char* kInspectExamples = R"(Examples:
  pagoda inspect SmolLM2-135M-Instruct.Q4_1.gguf
  pagoda inspect Org/Name
      a model in PAGODA_MODELS or in the cache of Hugging Face
  pagoda inspect big-00001-of-00004.gguf
      any part of a split model shows the whole
  pagoda inspect models/Qwen2.5-7B-Instruct
      a Hugging Face folder: config.json and *.safetensors, in GGUF's words
  pagoda inspect http://127.0.0.1:8000
      a running server: its blocks, what is retained of them, what more of them would give
  pagoda inspect model.gguf --json | jq .kv_cache.bytes_per_token
  pagoda inspect --store ~/.cache/pagoda/kv --verify
      a disk store: what it holds, and whether every page is whole
  pagoda inspect --kernels
      the kernel sets, and which of them this CPU runs)";

}  // namespace

void add_inspect_command(const CommandSpec& app, int& exit_status) {
  struct Options {
    std::string model;
    bool kernels = false;
    inspect::StoreInspection store;
    net::ServerAccess access;
    bool json = false;
  };
  const CommandSpec command = app.add_subcommand(
      "inspect",
      "A model file: metadata, tensors, architecture, KV bytes per token; a running server; or a "
      "disk store");
  command.footer(kInspectExamples);
  const auto options = std::make_shared<Options>();
  const Flag model = command.add_option(
      "MODEL", options->model,
      "GGUF file, or any part of a split one, a folder, or a name (Org/Name); or "
      "http[s]://host:port of a server");
  command
      .add_flag("--kernels", options->kernels,
                "instead of a model: the kernel sets of this program, which of them this CPU runs "
                "and which is used (PAGODA_KERNELS=NAME forces one)")
      .excludes(model);
  const Flag store =
      command
          .add_option("--store", options->store.path,
                      "instead of a model: the folder of a disk store (serve --kv-disk)")
          .excludes(model);
  command
      .add_flag("--verify", options->store.verify,
                "reads every page of the store; status 1 when one is damaged")
      .needs(store);
  add_access_options(command, options->access, "an admin's key for the server");
  command.add_flag("--json", options->json, "one JSON value on stdout");
  command.callback([options, &exit_status] {
    if (options->kernels) {
      fmt::print("{}", options->json ? inspect::kernels_json() : inspect::kernels_text());
      exit_status = 0;
      return;
    }
    if (!options->store.path.empty()) {
      options->store.json = options->json;
      const Result<bool> is_whole = inspect::inspect_store(options->store);
      if (!is_whole.ok()) print_error(is_whole.error().message);
      exit_status = is_whole.ok() && is_whole.value() ? 0 : 1;
      return;
    }
    if (options->model.empty()) throw_required("MODEL, --store or --kernels");
    if (options->model.starts_with("http://") || options->model.starts_with("https://")) {
      const Status shown = inspect::inspect_server(options->model, options->access, options->json);
      if (!shown.ok()) print_error(shown.error().message);
      exit_status = shown.ok() ? 0 : 1;
      return;
    }
    const Result<gguf::File> opened = app::open_model_file(options->model);
    if (!opened.ok()) {
      print_error(opened.error().message);
      exit_status = 1;
      return;
    }
    const gguf::File& file = opened.value();
    const inspect::Inspection inspection = inspect::inspect_model(file);
    fmt::print("{}", options->json ? inspect::inspection_json(file, inspection)
                                   : inspect::inspection_text(file, inspection));
    exit_status = 0;
  });
}

}  // namespace pagoda::cli
