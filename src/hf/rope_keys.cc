#include "hf/rope_keys.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <numbers>
#include <optional>
#include <string>
#include <vector>

#include "base/elementary.h"

namespace pagoda::hf {
namespace {

constexpr auto kRopeFields = std::to_array<std::string_view>(
    {"rope_type", "type", "rope_theta", "factor", "original_max_position_embeddings",
     "max_position_embeddings", "attention_factor", "attn_factor", "mscale", "mscale_all_dim",
     "beta_fast", "beta_slow", "low_freq_factor", "high_freq_factor", "partial_rotary_factor",
     "truncate", "finetuned", "short_factor", "long_factor"});

// How much queries grow with their position, in the rotation's fields.
constexpr const char* kQuerySlope = "llama_4_scaling_beta";

// One rotation as config.json has it.
struct Rotation {
  std::optional<JsonFields> fields;  // absent: plain
  std::string type = "default";
  double base = 0;
  double share = 1;
};

class RopeKeys {
 public:
  RopeKeys(const JsonFields& config, const Family& family, std::uint64_t head_dim,
           const KeyWriter& keys)
      : config_(config), family_(family), head_dim_(head_dim), keys_(keys) {}

  Status write() {
    RETURN_IF_ERROR(find_rotations());
    ASSIGN_OR_RETURN(dims_, rotating_dims());
    keys_.number("rope.freq_base", full_.base);
    keys_.count("rope.dimension_count", dims_);
    if (family_.half_split) keys_.builder().set_flag("pagoda.rope.half_split", true);
    RETURN_IF_ERROR(write_windowed());
    // transformers has a rotation of its own for gpt-oss where config.json is silent.
    if (family_.architecture == "gpt-oss" && !full_.fields) return config_.missing("rope_scaling");
    if (family_.architecture == "mistral3") {
      if (!full_.fields) return config_.missing("rope_parameters");
      RETURN_IF_ERROR(write_query_scale());
    }
    if (full_.type == "default") return ok_status();
    if (full_.type == "proportional") return write_proportional();
    if (full_.type == "llama3") return write_divisors();
    if (full_.type == "longrope") return write_longrope();
    ASSIGN_OR_RETURN(const double factor, factor_of());
    keys_.text("rope.scaling.type", full_.type);
    keys_.number("rope.scaling.factor", factor);
    return full_.type == "yarn" ? write_yarn(factor) : ok_status();
  }

 private:
  Status find_rotations() {
    ASSIGN_OR_RETURN(std::optional<JsonFields> given, config_.object("rope_parameters"));
    ASSIGN_OR_RETURN(const std::optional<JsonFields> scaling, config_.object("rope_scaling"));
    if (given && scaling && given->json() != scaling->json()) {
      return config_.refused("rope_scaling", "and rope_parameters says something else");
    }
    if (!given) given = scaling;
    std::optional<JsonFields> full = given;
    std::optional<JsonFields> windowed;
    const bool by_kind =
        given && (given->contains("full_attention") || given->contains("sliding_attention"));
    if (by_kind) {
      ASSIGN_OR_RETURN(full, given->object("full_attention"));
      ASSIGN_OR_RETURN(windowed, given->object("sliding_attention"));
      for (const auto& [name, value] : given->json().items()) {
        if (name == "full_attention" || name == "sliding_attention") continue;
        return given->refused(name, "expected full_attention and sliding_attention alone");
      }
    }
    ASSIGN_OR_RETURN(full_, read(full, "rope_theta", family_.rope_base));
    const bool local = family_.architecture == "gemma3" || family_.architecture == "gemma4";
    ASSIGN_OR_RETURN(windowed_, read(windowed, local ? "rope_local_base_freq" : "rope_theta",
                                     local ? 10000.0 : full_.base));
    has_windowed_ = by_kind;
    return ok_status();
  }

  Result<Rotation> read(const std::optional<JsonFields>& fields, const char* base_field,
                        double base) const {
    Rotation rotation{.fields = fields};
    ASSIGN_OR_RETURN(rotation.base, config_.number_or(base_field, base));
    ASSIGN_OR_RETURN(rotation.share,
                     config_.number_or("partial_rotary_factor", family_.rotary_share));
    if (!fields) return rotation;
    RETURN_IF_ERROR(check_fields(*fields));
    ASSIGN_OR_RETURN(const double own_base, fields->number_or("rope_theta", rotation.base));
    if (config_.has(base_field) && own_base != rotation.base) {
      return config_.refused(base_field, "and the rotation has another rope_theta");
    }
    ASSIGN_OR_RETURN(const std::string old_type, fields->text_or("type", "default"));
    ASSIGN_OR_RETURN(rotation.type, fields->text_or("rope_type", old_type));
    ASSIGN_OR_RETURN(rotation.base, fields->number_or("rope_theta", rotation.base));
    ASSIGN_OR_RETURN(rotation.share, fields->number_or("partial_rotary_factor", rotation.share));
    // transformers reads the two old names of Phi 3 as longrope.
    const bool phi = family_.architecture == "phi3";
    if (phi && (rotation.type == "su" || rotation.type == "yarn")) rotation.type = "longrope";
    constexpr std::array<std::string_view, 5> kTypes = {"default", "linear", "llama3", "yarn",
                                                        "longrope"};
    const bool is_known = std::find(kTypes.begin(), kTypes.end(), rotation.type) != kTypes.end() ||
                          (rotation.type == "proportional" && family_.architecture == "gemma4");
    if (!is_known) {
      return fields->refused(fields->has("rope_type") ? "rope_type" : "type",
                             "this version rotates by default, linear, llama3, yarn and longrope");
    }
    return rotation;
  }

  // The fields of a rotation are few, so that one this version does not know is refused.
  Status check_fields(const JsonFields& fields) const {
    for (const auto& [name, value] : fields.json().items()) {
      const bool is_known =
          std::find(kRopeFields.begin(), kRopeFields.end(), name) != kRopeFields.end() ||
          (name == kQuerySlope && family_.architecture == "mistral3");
      if (is_known || value.is_null()) continue;
      return fields.refused(name, "which this version does not know");
    }
    return ok_status();
  }

  Result<std::uint64_t> rotating_dims() const {
    // Pairs that do not turn are a part of a proportional rotation.
    const double share = full_.type == "proportional" ? 1.0 : full_.share;
    const double dims = std::floor(static_cast<double>(head_dim_) * share);
    if (!(dims >= 2) || dims > static_cast<double>(head_dim_) || std::fmod(dims, 2.0) != 0) {
      return config_.refused("partial_rotary_factor",
                             fmt::format("so that {} of {} dimensions of a head would rotate, "
                                         "expected an even number from 2",
                                         dims, head_dim_));
    }
    return static_cast<std::uint64_t>(dims);
  }

  // Layers with a window may rotate otherwise: Gemma 3 and 4 give them a base of their own, OLMo 3
  // no scaling.
  Status write_windowed() const {
    const bool gemma = family_.architecture == "gemma3" || family_.architecture == "gemma4";
    const bool olmo = family_.model_type == "olmo3";
    if (gemma) keys_.number("rope.freq_base_swa", windowed_.base);
    if (!has_windowed_) return ok_status();
    const bool same_base = gemma || windowed_.base == full_.base;
    const bool plain = windowed_.type == "default" &&
                       (windowed_.share == full_.share || full_.type == "proportional");
    const bool same = plain && full_.type == "default" && same_base;
    if (same || ((gemma || olmo) && plain && same_base)) return ok_status();
    return config_.refused("rope_parameters",
                           "layers with a window that rotate so are not supported");
  }

  Result<double> positive(const char* name, double fallback) const {
    ASSIGN_OR_RETURN(const double value, full_.fields->number_or(name, fallback));
    if (!(value > 0)) return full_.fields->wrong_type(name, "a number above 0");
    return value;
  }

  Result<double> original_context() const {
    // Phi 3 and others state it beside the rotation, which comes first in transformers.
    if (config_.has("original_max_position_embeddings")) {
      return config_.number("original_max_position_embeddings");
    }
    if (family_.architecture == "phi3") return 4096.0;  // also where the rotation states another
    ASSIGN_OR_RETURN(const double context, config_.number("max_position_embeddings"));
    return positive("original_max_position_embeddings", context);
  }

  Result<double> factor_of() const {
    if (full_.fields->has("factor")) return positive("factor", 1.0);
    if (full_.type != "yarn") return full_.fields->missing("factor");
    ASSIGN_OR_RETURN(const double context, config_.number("max_position_embeddings"));
    ASSIGN_OR_RETURN(const double original, original_context());
    return context / original;
  }

  Status write_yarn(double factor) const {
    const JsonFields& fields = *full_.fields;
    ASSIGN_OR_RETURN(const double original, original_context());
    keys_.count("rope.scaling.original_context_length", static_cast<std::uint64_t>(original));
    ASSIGN_OR_RETURN(const double fast, positive("beta_fast", 32.0));
    ASSIGN_OR_RETURN(const double slow, positive("beta_slow", 1.0));
    keys_.number("rope.scaling.yarn_beta_fast", fast);
    keys_.number("rope.scaling.yarn_beta_slow", slow);
    ASSIGN_OR_RETURN(const double scale, fields.number_or("mscale", 0));
    ASSIGN_OR_RETURN(const double all_scale, fields.number_or("mscale_all_dim", 0));
    const auto magnitude = [&](double multiplier) {
      return factor <= 1 ? 1.0 : 0.1 * multiplier * natural_log(factor) + 1.0;
    };
    const double computed =
        scale != 0 && all_scale != 0 ? magnitude(scale) / magnitude(all_scale) : magnitude(1.0);
    ASSIGN_OR_RETURN(const double attention, positive("attention_factor", computed));
    // vLLM and SGLang multiply by it. transformers does not know the field; DeepSeek's 8B model has
    // the reciprocal of what is computed, so that the product is 1.
    ASSIGN_OR_RETURN(const double more, positive("attn_factor", 1.0));
    keys_.number("rope.scaling.yarn_attn_factor", attention * more);
    if (family_.architecture == "deepseek2") {
      keys_.number("rope.scaling.yarn_log_multiplier", 0.1 * all_scale);
    }
    ASSIGN_OR_RETURN(const bool truncates, fields.flag_or("truncate", true));
    if (family_.architecture == "gpt-oss") {
      keys_.flag("rope.scaling.yarn_truncate", truncates);
    } else if (!truncates) {
      return fields.refused("truncate", "yarn without rounded bounds is not supported");
    }
    return ok_status();
  }

  // Gemma 4: the first share of all pairs turns, at frequencies of the whole head; others stand
  // still.
  Status write_proportional() const {
    constexpr float kStill = 1e30f;
    const double turning = std::floor(static_cast<double>(dims_) * full_.share / 2);
    std::vector<float> divisors(dims_ / 2, kStill);
    ASSIGN_OR_RETURN(const double factor, positive("factor", 1.0));
    std::fill_n(divisors.begin(), std::min(static_cast<std::size_t>(turning), divisors.size()),
                static_cast<float>(factor));
    return add_floats("rope_freqs.weight", divisors);
  }

  Status write_query_scale() const {
    if (!full_.fields || !full_.fields->has(kQuerySlope)) return ok_status();
    ASSIGN_OR_RETURN(const double slope, full_.fields->number(kQuerySlope));
    ASSIGN_OR_RETURN(const double context, original_context());
    keys_.number("attention.temperature_scale", slope);
    keys_.count("attention.temperature_length", static_cast<std::uint64_t>(context));
    return ok_status();
  }

  // Llama 3: long waves turn slower by the factor, short ones not, with a ramp between.
  Status write_divisors() const {
    if (!full_.fields->has("factor")) return full_.fields->missing("factor");
    ASSIGN_OR_RETURN(const double factor, positive("factor", 1.0));
    ASSIGN_OR_RETURN(const double low, positive("low_freq_factor", 1.0));
    ASSIGN_OR_RETURN(const double high, positive("high_freq_factor", 4.0));
    ASSIGN_OR_RETURN(const double original, original_context());
    if (!(high > low)) {
      return full_.fields->refused("high_freq_factor", "expected more than low_freq_factor");
    }
    std::vector<float> divisors;
    for (std::uint64_t pair = 0; pair < dims_ / 2; ++pair) {
      const double exponent = -2.0 * static_cast<double>(pair) / static_cast<double>(dims_);
      const double turns = original * power(full_.base, exponent) / (2 * std::numbers::pi);
      const double kept = std::clamp((turns - low) / (high - low), 0.0, 1.0);
      divisors.push_back(static_cast<float>(1.0 / ((1.0 - kept) / factor + kept)));
    }
    return add_floats("rope_freqs.weight", divisors);
  }

  // Two sets of divisors; transformers multiplies by a factor that it computes from the contexts.
  Status write_longrope() const {
    ASSIGN_OR_RETURN(const double original, original_context());
    ASSIGN_OR_RETURN(const double context, config_.number("max_position_embeddings"));
    if (!(original > 1)) {
      return config_.refused("original_max_position_embeddings", "expected more than 1");
    }
    ASSIGN_OR_RETURN(const double ratio, positive("factor", context / original));
    const double computed =
        ratio <= 1 ? 1.0 : std::sqrt(1.0 + natural_log(ratio) / natural_log(original));
    ASSIGN_OR_RETURN(const double attention, positive("attention_factor", computed));
    keys_.text("rope.scaling.type", "longrope");
    keys_.count("rope.scaling.original_context_length", static_cast<std::uint64_t>(original));
    keys_.number("rope.scaling.attn_factor", attention);
    RETURN_IF_ERROR(add_factors("short_factor", "rope_factors_short.weight"));
    return add_factors("long_factor", "rope_factors_long.weight");
  }

  Status add_factors(const char* field, std::string_view tensor) const {
    const JsonValue* const list = full_.fields->find(field);
    const std::string expected = fmt::format("a list of {} numbers above 0", dims_ / 2);
    if (list == nullptr) return full_.fields->missing(field);
    if (!list->is_array() || list->size() != dims_ / 2) {
      return full_.fields->wrong_type(field, expected);
    }
    std::vector<float> factors;
    for (const JsonValue& factor : *list) {
      if (!factor.is_number() || !(factor.get<double>() > 0)) {
        return full_.fields->wrong_type(field, expected);
      }
      factors.push_back(factor.get<float>());
    }
    return add_floats(tensor, factors);
  }

  Status add_floats(std::string_view name, const std::vector<float>& values) const {
    gguf::FileBuilder& builder = keys_.builder();
    const std::span<std::byte> bytes = builder.allocate(values.size() * sizeof(float));
    std::memcpy(bytes.data(), values.data(), bytes.size());
    const std::uint64_t extent = values.size();
    return builder.add_tensor(name, gguf::TensorType::kF32, {&extent, 1}, bytes);
  }

  const JsonFields& config_;
  const Family& family_;
  std::uint64_t head_dim_;
  const KeyWriter& keys_;
  Rotation full_;
  Rotation windowed_;
  bool has_windowed_ = false;
  std::uint64_t dims_ = 0;
};

}  // namespace

Status write_rope_keys(const JsonFields& config, const Family& family, std::uint64_t head_dim,
                       const KeyWriter& keys) {
  return RopeKeys(config, family, head_dim, keys).write();
}

}  // namespace pagoda::hf
