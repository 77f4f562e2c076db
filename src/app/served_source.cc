#include "app/served_source.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <string_view>
#include <system_error>
#include <utility>

#include "app/memory_plan.h"
#include "app/model_finder.h"
#include "app/model_name.h"
#include "terminal/messages.h"

namespace pagoda::app {
Result<std::unique_ptr<ServedSource>> ServedSource::open(const std::string& model,
                                                         const ModelLoadOptions& options,
                                                         const RandomModelOptions& random,
                                                         const kernels::KernelSet& kernels) {
  std::unique_ptr<ServedSource> source(
      new ServedSource(kernels, random.shape.empty() ? model : random.shape));
  if (random.shape.empty()) {
    ASSIGN_OR_RETURN(FoundModel found, find_model(model, ModelEnvironment::of_process()));
    source->name_ = std::move(found.name);
    source->path_ = found.path;
    ASSIGN_OR_RETURN(source->loaded_, LoadedModel::load(found.path, kernels, options));
  } else {
    if (!options.tokenizer.empty()) {
      return Error{ErrorCode::kInvalidArgument,
                   "`tokenizer`: random weights have no text of their own; leave it out"};
    }
    if (!options.overrides.empty()) {
      return Error{
          ErrorCode::kInvalidArgument,
          "`hf_overrides` and `rope_scaling` change a model's configuration; random weights "
          "have none"};
    }
    const bool has_dtype = options.quantization.dtype.has_value();
    if (has_dtype || options.quantization.type) {
      return Error{ErrorCode::kInvalidArgument,
                   fmt::format("`{}`: random weights are made in their type; use `weights`",
                               has_dtype ? "dtype" : "quantization")};
    }
    ASSIGN_OR_RETURN(source->random_, RandomModel::make(random));
  }
  return source;
}

const text::Tokenizer& ServedSource::tokenizer() const {
  return random_ ? random_->tokenizer() : loaded_->tokenizer();
}

Result<std::optional<text::ChatTemplate>> ServedSource::chat_template(
    const std::string& file) const {
  if (!file.empty()) {
    ASSIGN_OR_RETURN(text::ChatTemplate loaded, text::ChatTemplate::load_file(file, tokenizer()));
    return std::optional(std::move(loaded));
  }
  if (random_) return std::optional<text::ChatTemplate>();
  Result<text::ChatTemplate> loaded = loaded_->chat_template();
  if (loaded.ok()) return std::optional(std::move(loaded).value());
  if (loaded.error().code != ErrorCode::kNotFound) terminal::print_warning(loaded.error().message);
  return std::optional<text::ChatTemplate>();
}

std::vector<gguf::OpenedPart> ServedSource::parts() const {
  return random_ ? std::vector<gguf::OpenedPart>() : loaded_->file().opened_parts();
}

std::optional<std::int64_t> ServedSource::weights_in_file() const {
  return loaded_ ? std::optional(app::weights_in_file(loaded_->file())) : std::nullopt;
}

nlohmann::ordered_json ServedSource::weights_facts() const {
  if (!loaded_) return nlohmann::ordered_json::object();
  const gguf::File& file = loaded_->file();
  std::map<std::string_view, std::uint64_t> bytes;  // by type
  std::uint64_t parameters = 0;
  for (const gguf::Tensor& tensor : file.tensors()) {
    bytes[gguf::tensor_type_info(tensor.type).name] += tensor.bytes.size();
    parameters += tensor.elements();
  }
  const auto most = std::max_element(
      bytes.begin(), bytes.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
  const auto architecture = file.metadata().text_or("general.architecture", "");
  return {{"format", std::filesystem::path(path_).extension() == ".gguf" ? "gguf" : "safetensors"},
          {"architecture", architecture.ok() ? architecture.value() : ""},
          {"type", most != bytes.end() ? most->first : ""},
          {"parameters", parameters},
          {"bytes", weights_in_file().value_or(0)}};
}

std::uint64_t ServedSource::trained_context() const {
  return random_ ? random_->config().context : loaded_->config().context;
}

std::string ServedSource::context_choice() const {
  const model::Config& config = random_ ? random_->config() : loaded_->config();
  const model::RopeConfig& rope = config.ropes.front();
  if (rope.scaling != model::RopeScaling::kLongRope) return {};
  return fmt::format("longrope's {} factors, for {} {} tokens",
                     rope.has_long_factors ? "long" : "short",
                     rope.has_long_factors ? "more than" : "up to", rope.original_context);
}

std::vector<std::string> ServedSource::names() const {
  if (random_) return {model_};
  std::string first = name_;
  if (first.empty()) {
    const std::filesystem::path path(path_);
    first = (path.extension() == ".gguf" ? path.stem() : path.filename()).string();
  }
  std::error_code ignored;
  const bool is_file = is_path_like(model_) || std::filesystem::exists(model_, ignored);
  if (is_file || first == model_) return {first};
  return {first, model_};
}

Result<SamplingDefaults> ServedSource::sampling_defaults(const GenerationConfig& config) const {
  SamplingDefaults of_model;
  if (loaded_) of_model = model_sampling(loaded_->file().metadata());
  for (const std::string& warning : of_model.warnings) terminal::print_warning(warning);
  return with_generation_config(std::move(of_model), config);
}

Result<std::unique_ptr<engine::Backend>> ServedSource::create_backend(
    const DeviceOptions& device, engine::BackendOptions options) const {
  if (random_) {
    return create_random_backend(device, random_->config(), random_->weights(), kernels_, options);
  }
  options.on_pack = loaded_->pack_progress();
  return app::create_backend(device, *loaded_, kernels_, options);
}

}  // namespace pagoda::app
