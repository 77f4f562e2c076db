// pagoda pull: a model of Hugging Face onto this machine, by huggingface_hub's own program.
#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "app/model_finder.h"
#include "app/model_folder.h"
#include "app/model_name.h"
#include "base/ascii.h"
#include "bench/child_program.h"
#include "cli/child_process.h"
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
    "  HF_TOKEN=… pagoda pull meta-llama/Llama-3.2-1B-Instruct  (models that want a login)\n"
    "Runs \"hf download\" of huggingface_hub (pip install huggingface_hub), which puts the model "
    "into\n"
    "its cache folder: HF_HUB_CACHE, HF_HOME/hub or ~/.cache/huggingface/hub. Then every command "
    "takes\n"
    "the name: pagoda serve Qwen/Qwen2.5-0.5B-Instruct. The exit status is that of hf.";

// A folder is downloaded only as far as it is read: weights, configuration, tokenizer, chat
// template.
constexpr const char* kFolderPatterns[] = {"*.safetensors", "*.json",     "*.jinja",
                                           "tokenizer*",    "merges.txt", "vocab.txt"};

std::string with_case(std::string text, int (*change)(int)) {
  for (char& c : text) c = static_cast<char>(change(static_cast<unsigned char>(c)));
  return text;
}

std::vector<std::string> patterns_for(const app::ModelName& name) {
  if (name.file.empty()) return {std::begin(kFolderPatterns), std::end(kFolderPatterns)};
  if (name.file.ends_with(".gguf")) {
    const std::string pattern = app::gguf_set_pattern(name.file);
    if (name.file.find('/') != std::string::npos) return {pattern};
    return {pattern, "*/" + pattern};
  }
  std::vector<std::string> patterns;
  for (const std::string& tag : std::set<std::string>{name.file, with_case(name.file, std::toupper),
                                                      with_case(name.file, std::tolower)}) {
    patterns.push_back(fmt::format("*[-._]{}.gguf", tag));
    patterns.push_back(fmt::format("*[-._]{}-*-of-*.gguf", tag));
  }
  return patterns;
}

// The first number of "huggingface_hub version: 0.36.0". Where there is none, it is a newer one.
bool is_before_version_1(const std::string& program) {
  const auto told = bench::run_program({program, "version"}, [] { return false; });
  if (!told.ok()) return false;
  const std::string& text = told.value().out;
  for (std::size_t at = 0; at + 1 < text.size(); ++at) {
    if (!is_ascii_digit(text[at]) || text[at + 1] != '.') continue;
    return text[at] == '0' && (at == 0 || !is_ascii_digit(text[at - 1]));
  }
  return false;
}

// Versions before 1 take all patterns behind one flag, later ones a flag for each.
std::vector<std::string> download_words(const std::string& program, const app::ModelName& name) {
  std::vector<std::string> words = {program, "download", name.repository};
  if (!name.revision.empty()) words.push_back("--revision=" + name.revision);
  const bool one_flag = is_before_version_1(program);
  if (one_flag) words.emplace_back("--include");
  for (const std::string& pattern : patterns_for(name)) {
    words.push_back(one_flag ? pattern : "--include=" + pattern);
  }
  return words;
}

Result<std::string> hub_program() {
  const char* const path = std::getenv("PATH");
  for (const char* const name : {"hf", "huggingface-cli"}) {
    const auto program = find_program(name, path != nullptr ? path : "");
    if (program) return *program;
  }
  return Error{ErrorCode::kNotFound,
               "neither hf nor huggingface-cli is on PATH: they come with huggingface_hub (pip "
               "install huggingface_hub); or download the model elsewhere and set HF_HOME or "
               "PAGODA_MODELS"};
}

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

Result<int> pull(const PullOptions& options) {
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
  ASSIGN_OR_RETURN(const std::string program, hub_program());
  ASSIGN_OR_RETURN(const int status, run_child(download_words(program, name.value())));
  if (status != 0) return status;  // it has said why
  return show_pulled(model, name.value());
}

}  // namespace

void add_pull_command(const CommandSpec& app, int& exit_status) {
  const CommandSpec command =
      app.add_subcommand("pull", "Download a model of Hugging Face, by huggingface_hub");
  const auto options = std::make_shared<PullOptions>();
  command
      .add_option("NAME", options->model,
                  "Org/Name, with @REVISION, and with :FILE.gguf or a quantisation such as "
                  ":Q4_K_M of GGUF files")
      .required();
  add_revision_option(command, options->revision);
  command.add_flag("--force", options->force,
                   "ask the hub even if the model is here: what is new is downloaded");
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
