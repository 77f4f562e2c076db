#include "app/loaded_model.h"

#include <fmt/format.h>

#include <filesystem>
#include <system_error>
#include <utility>

#include "app/cache_folder.h"
#include "hf/folder.h"
#include "terminal/messages.h"
#include "terminal/progress_bar.h"

namespace pagoda::app {
namespace {

// "meta-llama/Llama-3-8B": one slash between two names, and no file's ending.
bool is_hugging_face_name(const std::string& path) {
  const std::size_t slash = path.find('/');
  if (slash == std::string::npos || slash == 0 || slash + 1 == path.size()) return false;
  if (path.find('/', slash + 1) != std::string::npos || path.ends_with(".gguf")) return false;
  return path[0] != '.' && path[0] != '~';
}

// What the user can do about a file that is not there.
std::string missing_file_hint(const std::string& path) {
  if (path == default_model_path()) {
    return "; ./run downloads the default model, or name a GGUF file with `model`";
  }
  if (is_hugging_face_name(path)) {
    return "; models are GGUF files or folders on this machine, names on Hugging Face are not "
           "supported";
  }
  return "";
}

}  // namespace

std::string default_model_path() {
  return cache_folder() + "/models/SmolLM2-135M-Instruct.Q4_1.gguf";
}

Result<gguf::File> open_model_file(const std::string& path) {
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) return hf::open_folder(path);
  Result<gguf::File> file = gguf::File::open(path);
  if (file.ok() || std::filesystem::exists(path, ignored)) return file;
  return Error{file.error().code, file.error().message + missing_file_hint(path)};
}

LoadedModel::LoadedModel(gguf::File file, model::Config config, model::Weights weights,
                         std::unique_ptr<text::Tokenizer> tokenizer)
    : file_(std::move(file)),
      config_(std::move(config)),
      weights_(std::move(weights)),
      tokenizer_(std::move(tokenizer)) {}

Result<std::unique_ptr<LoadedModel>> LoadedModel::load(const std::string& path,
                                                       const kernels::KernelSet& kernels) {
  ASSIGN_OR_RETURN(gguf::File file, open_model_file(path));
  ASSIGN_OR_RETURN(model::Config config, model::read_config(file));
  ASSIGN_OR_RETURN(model::Weights weights, model::load_weights(file, config, kernels));
  if (!file.metadata().contains("tokenizer.ggml.model") && file.version() == 0) {
    return Error{ErrorCode::kNotFound,
                 fmt::format("{}: has no tokenizer.json, which holds the tokenizer of a model in a "
                             "folder",
                             path)};
  }
  ASSIGN_OR_RETURN(std::unique_ptr<text::Tokenizer> tokenizer,
                   text::Tokenizer::load(file.metadata()));
  for (const std::string& warning : tokenizer->warnings()) terminal::print_warning(warning);
  if (tokenizer->size() > config.vocabulary) {
    return Error{ErrorCode::kCorrupt,
                 fmt::format("{}: the tokenizer has {} tokens, the model's embedding only {}", path,
                             tokenizer->size(), config.vocabulary)};
  }
  return std::unique_ptr<LoadedModel>(new LoadedModel(std::move(file), std::move(config),
                                                      std::move(weights), std::move(tokenizer)));
}

model::PackProgress LoadedModel::pack_progress() const {
  static const SteadyClock kClock;
  const auto bar = std::make_shared<terminal::ProgressBar>("packing weights", "bytes", kClock);
  return [this, bar](std::size_t done, std::size_t all) {
    bar->show(done, all);
    if (done < all) return;
    bar->clear();
    file_.release_pages();
  };
}

}  // namespace pagoda::app
