#include "model/config.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

#include "base/elementary.h"

namespace pagoda::model {
namespace {

// Reads keys below "<architecture>." and names file, key and range in every error.
class ConfigReader {
 public:
  ConfigReader(const gguf::Metadata& metadata, std::string architecture)
      : metadata_(metadata), architecture_(std::move(architecture)) {}

  std::string key(std::string_view name) const { return fmt::format("{}.{}", architecture_, name); }

  Error out_of_range(std::string_view name, std::string_view value, std::string_view range) const {
    return {ErrorCode::kOutOfRange,
            fmt::format("{}: {} is {}, expected {}", metadata_.source(), key(name), value, range)};
  }

  Result<std::uint32_t> count(std::string_view name, std::uint64_t max) const {
    ASSIGN_OR_RETURN(const std::uint64_t value, metadata_.unsigned_value(key(name)));
    return checked(name, value, max);
  }

  Result<std::uint32_t> count_or(std::string_view name, std::uint64_t fallback,
                                 std::uint64_t max) const {
    ASSIGN_OR_RETURN(const std::uint64_t value, metadata_.unsigned_value_or(key(name), fallback));
    return checked(name, value, max);
  }

  Result<double> positive_or(std::string_view name, double fallback) const {
    ASSIGN_OR_RETURN(const double value, metadata_.number_or(key(name), fallback));
    if (!(value > 0) || !std::isfinite(value)) {
      return out_of_range(name, fmt::format("{}", value), "a finite number above 0");
    }
    return value;
  }

  // Reads a number, or one number per layer, which must then all be equal.
  Result<std::uint32_t> count_for_all_layers(std::string_view name, std::uint64_t fallback,
                                             std::uint64_t max) const {
    const gguf::MetadataValue* const value = metadata_.find(key(name));
    if (value == nullptr || value->type != gguf::ValueType::kArray) {
      return count_or(name, fallback, max);
    }
    ASSIGN_OR_RETURN(const std::vector<std::int64_t> values, metadata_.integers(key(name)));
    if (values.empty() || values.front() < 0) return out_of_range(name, "empty", "numbers above 0");
    if (std::any_of(values.begin(), values.end(),
                    [&](std::int64_t other) { return other != values.front(); })) {
      return Error{ErrorCode::kUnsupported,
                   fmt::format("{}: {} differs between layers, which this version cannot run",
                               metadata_.source(), key(name))};
    }
    return checked(name, static_cast<std::uint64_t>(values.front()), max);
  }

  const gguf::Metadata& metadata() const { return metadata_; }

 private:
  Result<std::uint32_t> checked(std::string_view name, std::uint64_t value,
                                std::uint64_t max) const {
    if (value < 1 || value > max) {
      return out_of_range(name, fmt::format("{}", value), fmt::format("1 to {}", max));
    }
    return static_cast<std::uint32_t>(value);
  }

  const gguf::Metadata& metadata_;
  std::string architecture_;
};

// The limits are far above any current model, and so low that no product of two overflows.
constexpr std::uint64_t kLayersMax = 4096;
constexpr std::uint64_t kWidthMax = 1 << 20;
constexpr std::uint64_t kHeadsMax = 4096;
constexpr std::uint64_t kHeadDimMax = 1024;
constexpr std::uint64_t kContextMax = 1u << 30;

Status read_rope_scaling(const ConfigReader& reader, RopeConfig& rope) {
  ASSIGN_OR_RETURN(const std::string_view type,
                   reader.metadata().text_or(reader.key("rope.scaling.type"), "none"));
  if (type == "none") return ok_status();
  ASSIGN_OR_RETURN(rope.factor, reader.positive_or("rope.scaling.factor", 1.0));
  if (type == "linear") {
    rope.scaling = RopeScaling::kLinear;
    return ok_status();
  }
  if (type != "yarn") {
    return reader.out_of_range("rope.scaling.type", fmt::format("'{}'", type),
                               "none, linear or yarn");
  }
  rope.scaling = RopeScaling::kYarn;
  ASSIGN_OR_RETURN(rope.original_context,
                   reader.count("rope.scaling.original_context_length", kContextMax));
  ASSIGN_OR_RETURN(const double given, reader.positive_or("rope.scaling.attn_factor", 1.0));
  rope.attention_factor = given * (1.0 + 0.1 * natural_log(std::max(rope.factor, 1.0)));
  ASSIGN_OR_RETURN(rope.yarn_beta_fast, reader.positive_or("rope.scaling.yarn_beta_fast", 32.0));
  ASSIGN_OR_RETURN(rope.yarn_beta_slow, reader.positive_or("rope.scaling.yarn_beta_slow", 1.0));
  return ok_status();
}

Status read_rope(const ConfigReader& reader, Config& config) {
  RopeConfig& rope = config.rope;
  ASSIGN_OR_RETURN(rope.dims,
                   reader.count_or("rope.dimension_count", config.key_dim, config.key_dim));
  if (rope.dims % 2 != 0) {
    return reader.out_of_range("rope.dimension_count", fmt::format("{}", rope.dims),
                               "an even number");
  }
  ASSIGN_OR_RETURN(rope.base, reader.positive_or("rope.freq_base", 10000.0));
  ASSIGN_OR_RETURN(const bool half_split,
                   reader.metadata().flag_or("pagoda.rope.half_split", false));
  if (half_split || config.qk_norm) rope.pairing = kernels::RopePairing::kHalfSplit;
  return read_rope_scaling(reader, rope);
}

// Layer i sees all keys when (i + 1) % pattern == 0, else the window; with pattern 1 or without a
// window all layers see all keys.
Status read_attention_windows(const ConfigReader& reader, Config& config) {
  config.attention.assign(config.layers, {});
  if (!reader.metadata().contains(reader.key("attention.sliding_window"))) return ok_status();
  ASSIGN_OR_RETURN(const std::uint32_t window,
                   reader.count("attention.sliding_window", kContextMax));
  ASSIGN_OR_RETURN(const std::uint32_t pattern,
                   reader.count_or("attention.sliding_window_pattern", 1, kLayersMax));
  for (std::uint32_t layer = 0; layer < config.layers; ++layer) {
    if ((layer + 1) % pattern != 0) config.attention[layer].window = window;
  }
  return ok_status();
}

Result<std::uint32_t> read_vocabulary(const gguf::File& file) {
  const gguf::Tensor* const embedding = file.find_tensor("token_embd.weight");
  if (embedding == nullptr) {
    return Error{ErrorCode::kNotFound,
                 fmt::format("{}: no tensor 'token_embd.weight': this file holds no model weights",
                             file.path())};
  }
  const std::uint64_t rows = embedding->rows();
  if (rows < 1 || rows > std::numeric_limits<std::int32_t>::max()) {
    return Error{ErrorCode::kOutOfRange,
                 fmt::format("{}: tensor 'token_embd.weight' has {} rows, expected 1 to 2^31 - 1",
                             file.path(), rows)};
  }
  return static_cast<std::uint32_t>(rows);
}

}  // namespace

Result<Config> read_config(const gguf::File& file) {
  ASSIGN_OR_RETURN(const std::string_view architecture,
                   file.metadata().text("general.architecture"));
  if (architecture != "llama" && architecture != "qwen3") {
    return Error{ErrorCode::kUnsupported,
                 fmt::format("{}: architecture '{}' is not supported; this version runs: llama, "
                             "qwen3",
                             file.path(), architecture)};
  }
  const ConfigReader reader(file.metadata(), std::string(architecture));
  if (file.metadata().contains(reader.key("expert_count"))) {
    ASSIGN_OR_RETURN(const std::uint64_t experts,
                     file.metadata().unsigned_value(reader.key("expert_count")));
    if (experts > 0) {
      return Error{ErrorCode::kUnsupported,
                   fmt::format("{}: mixtures of experts ({} experts) are not supported",
                               file.path(), experts)};
    }
  }
  Config config;
  config.qk_norm = architecture == "qwen3";
  ASSIGN_OR_RETURN(config.vocabulary, read_vocabulary(file));
  ASSIGN_OR_RETURN(config.layers, reader.count("block_count", kLayersMax));
  ASSIGN_OR_RETURN(config.width, reader.count("embedding_length", kWidthMax));
  ASSIGN_OR_RETURN(config.context, reader.count("context_length", kContextMax));
  ASSIGN_OR_RETURN(config.hidden_width,
                   reader.count_for_all_layers("feed_forward_length", 0, kWidthMax));
  ASSIGN_OR_RETURN(config.heads, reader.count_for_all_layers("attention.head_count", 0, kHeadsMax));
  ASSIGN_OR_RETURN(config.kv_heads, reader.count_for_all_layers("attention.head_count_kv",
                                                                config.heads, config.heads));
  if (config.heads % config.kv_heads != 0) {
    return reader.out_of_range("attention.head_count_kv", fmt::format("{}", config.kv_heads),
                               fmt::format("a divisor of the {} query heads", config.heads));
  }
  const std::uint32_t head_dim = config.width / config.heads;
  ASSIGN_OR_RETURN(config.key_dim, reader.count_or("attention.key_length", head_dim, kHeadDimMax));
  ASSIGN_OR_RETURN(config.value_dim,
                   reader.count_or("attention.value_length", head_dim, kHeadDimMax));
  ASSIGN_OR_RETURN(const double epsilon,
                   reader.positive_or("attention.layer_norm_rms_epsilon", 1e-5));
  config.norm_epsilon = static_cast<float>(epsilon);
  RETURN_IF_ERROR(read_rope(reader, config));
  RETURN_IF_ERROR(read_attention_windows(reader, config));
  return config;
}

}  // namespace pagoda::model
