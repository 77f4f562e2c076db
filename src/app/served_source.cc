#include "app/served_source.h"

#include <filesystem>
#include <utility>

#include "terminal/messages.h"

namespace pagoda::app {

Result<std::unique_ptr<ServedSource>> ServedSource::open(const std::string& path,
                                                         const RandomModelOptions& random,
                                                         const kernels::KernelSet& kernels) {
  std::unique_ptr<ServedSource> source(
      new ServedSource(kernels, random.shape.empty() ? path : random.shape));
  if (random.shape.empty()) {
    ASSIGN_OR_RETURN(source->loaded_, LoadedModel::load(path, kernels));
  } else {
    ASSIGN_OR_RETURN(source->random_, RandomModel::make(random));
  }
  return source;
}

const text::Tokenizer& ServedSource::tokenizer() const {
  return random_ ? random_->tokenizer() : loaded_->tokenizer();
}

std::optional<text::ChatTemplate> ServedSource::own_chat_template() const {
  if (random_) return std::nullopt;
  Result<text::ChatTemplate> loaded =
      text::ChatTemplate::load(loaded_->file().metadata(), loaded_->tokenizer());
  if (loaded.ok()) return std::move(loaded).value();
  if (loaded.error().code != ErrorCode::kNotFound) terminal::print_warning(loaded.error().message);
  return std::nullopt;
}

std::vector<gguf::OpenedPart> ServedSource::parts() const {
  return random_ ? std::vector<gguf::OpenedPart>() : loaded_->file().opened_parts();
}

std::uint64_t ServedSource::trained_context() const {
  return random_ ? random_->config().context : loaded_->config().context;
}

std::string ServedSource::name() const {
  if (random_) return path_;
  // A folder has no ending, and the dots in its name are part of it.
  const bool is_folder = loaded_->file().version() == 0;
  const Result<std::string_view> given =
      loaded_->file().metadata().text_or("general.name", "model");
  if (is_folder && given.ok()) return std::string(given.value());
  return std::filesystem::path(path_).stem().string();
}

Result<std::unique_ptr<engine::Backend>> ServedSource::create_backend(
    const DeviceOptions& device, engine::BackendOptions options) const {
  if (random_) {
    return create_random_backend(device, random_->config(), random_->weights(), kernels_, options);
  }
  options.on_pack = loaded_->pack_progress();
  return app::create_backend(device, loaded_->config(), loaded_->weights(), kernels_, options);
}

}  // namespace pagoda::app
