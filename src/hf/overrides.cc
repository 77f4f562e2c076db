#include "hf/overrides.h"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <optional>
#include <string_view>
#include <utility>

#include "gguf/file_builder.h"
#include "hf/json_file.h"
#include "text/strict_json.h"

namespace pagoda::hf {
namespace {

constexpr const char* kFieldsName = "`hf_overrides`";
constexpr const char* kRopeName = "`rope_scaling`";
// Read by model/config.cc and model/weights.cc, which leaves out tensors of the file's own scaling.
constexpr const char* kReplacedKey = "pagoda.rope.replaced";
constexpr const char* kOverridesKey = "pagoda.overrides";

Result<JsonValue> parse_object(const std::string& text, std::string_view name) {
  Result<JsonValue> json = text::parse_strict_json(text);
  if (!json.ok() && text.find('{') != std::string::npos) {
    return Error{ErrorCode::kInvalidArgument, fmt::format("{}: {}", name, json.error().message)};
  }
  if (json.ok() && json.value().is_object()) return json;
  return Error{ErrorCode::kInvalidArgument,
               fmt::format("{}: expected a JSON object, such as {{\"rope_type\": \"yarn\", "
                           "\"factor\": 4.0, \"original_max_position_embeddings\": 32768}}",
                           name)};
}

std::string place_of(std::string_view name) { return fmt::format("{}: ", name); }

// Nothing where there is no factor to multiply by.
Result<std::optional<std::uint64_t>> scaled_context(const JsonFields& rope, std::uint64_t trained) {
  ASSIGN_OR_RETURN(const std::string type, rope.text_or("rope_type", "linear"));
  // Llama 3's factor is that of slow waves: its context is the trained one.
  if (!rope.has("factor") || type == "llama3") return std::optional<std::uint64_t>();
  ASSIGN_OR_RETURN(const double factor, rope.number("factor"));
  ASSIGN_OR_RETURN(const std::uint64_t original,
                   rope.count_or("original_max_position_embeddings", trained));
  const double context = std::floor(factor * static_cast<double>(original));
  if (!(factor > 0) || !(context >= 1) || context > 1e9) {
    return rope.refused("factor", "expected one that gives a context of 1 to 10^9 tokens");
  }
  return std::optional<std::uint64_t>(static_cast<std::uint64_t>(context));
}

// A rotation in rope_parameters keeps its base and share; other fields are those of the scaling.
Status override_rotation(const std::string& text, JsonValue& config) {
  ASSIGN_OR_RETURN(const JsonValue scaling, parse_object(text, kRopeName));
  const bool has_part = config.contains("text_config") && config["text_config"].is_object();
  JsonValue& part = has_part ? config["text_config"] : config;
  const JsonFields fields(scaling, place_of(kRopeName));
  const JsonFields before(part, place_of("config.json"));
  ASSIGN_OR_RETURN(const std::uint64_t trained, before.count_or("max_position_embeddings", 0));
  ASSIGN_OR_RETURN(const auto context, scaled_context(fields, trained));
  if (context) part["max_position_embeddings"] = *context;
  JsonValue rotation = JsonValue::object();
  if (const JsonValue* const old = before.find("rope_parameters")) {
    if (old->contains("full_attention")) {
      return Error{ErrorCode::kUnsupported,
                   fmt::format("{}: layers of this model rotate in several ways; use "
                               "`hf_overrides` with all of `rope_parameters`",
                               kRopeName)};
    }
    for (const char* const kept : {"rope_theta", "partial_rotary_factor"}) {
      if (old->contains(kept)) rotation[kept] = (*old)[kept];
    }
  }
  rotation.update(scaling);
  // The context of before, as for GGUF files: max_position_embeddings is the scaled one now.
  if (context && !fields.has("original_max_position_embeddings")) {
    rotation["original_max_position_embeddings"] = trained;
  }
  part.erase("rope_parameters");
  part["rope_scaling"] = std::move(rotation);
  return ok_status();
}

struct RopeKey {
  const char* field;
  const char* key;
};
constexpr auto kRopeKeys = std::to_array<RopeKey>({
    {"factor", "rope.scaling.factor"},
    {"attention_factor", "rope.scaling.yarn_attn_factor"},
    {"beta_fast", "rope.scaling.yarn_beta_fast"},
    {"beta_slow", "rope.scaling.yarn_beta_slow"},
    {"rope_theta", "rope.freq_base"},
});
constexpr auto kRemovedKeys = std::to_array<const char*>(
    {"rope.scaling.type", "rope.scaling.original_context_length", "rope.scaling.attn_factor",
     "rope.scaling.yarn_log_multiplier", "rope.scaling.yarn_ext_factor", "rope.scaling.finetuned",
     "rope.scale_linear"});

class RotationKeys {
 public:
  RotationKeys(const JsonValue& scaling, std::string architecture, gguf::FileBuilder& builder)
      : fields_(scaling, place_of(kRopeName)),
        architecture_(std::move(architecture)),
        builder_(builder) {}

  Status write(std::uint64_t trained) {
    ASSIGN_OR_RETURN(const std::string old_type, fields_.text_or("type", "default"));
    ASSIGN_OR_RETURN(const std::string type, fields_.text_or("rope_type", old_type));
    if (type != "default" && type != "linear" && type != "yarn") {
      return fields_.refused(fields_.has("rope_type") ? "rope_type" : "type",
                             "expected default, linear or yarn");
    }
    if (type != "default" && !fields_.has("factor")) return fields_.missing("factor");
    ASSIGN_OR_RETURN(const auto context, scaled_context(fields_, trained));
    ASSIGN_OR_RETURN(const std::uint64_t original,
                     fields_.count_or("original_max_position_embeddings", trained));
    for (const char* const removed : kRemovedKeys) builder_.remove(key(removed));
    builder_.set_text(key("rope.scaling.type"), type == "default" ? "none" : type);
    if (type == "yarn")
      builder_.set_unsigned(key("rope.scaling.original_context_length"), original);
    for (const RopeKey& rope : kRopeKeys) {
      const bool is_base = std::string_view(rope.field) == "rope_theta";
      if (!is_base || fields_.has(rope.field)) builder_.remove(key(rope.key));
      if (!fields_.has(rope.field)) continue;
      ASSIGN_OR_RETURN(const double value, fields_.number(rope.field));
      builder_.set_number(key(rope.key), value);
    }
    RETURN_IF_ERROR(write_multiplier());
    if (context) {
      builder_.remove(key("context_length"));
      builder_.set_unsigned(key("context_length"), *context);
    }
    return check_fields();
  }

 private:
  std::string key(std::string_view name) const { return fmt::format("{}.{}", architecture_, name); }

  // mscale_all_dim, of which files of DeepSeek have a tenth. Another mscale would be a magnitude
  // that files have no key for.
  Status write_multiplier() {
    if (!fields_.has("mscale_all_dim")) return ok_status();
    ASSIGN_OR_RETURN(const double all, fields_.number("mscale_all_dim"));
    ASSIGN_OR_RETURN(const double one, fields_.number_or("mscale", all));
    if (one != all) return fields_.refused("mscale", "expected mscale_all_dim");
    builder_.set_number(key("rope.scaling.yarn_log_multiplier"),
                        architecture_ == "deepseek2" ? 0.1 * all : all);
    return ok_status();
  }

  Status check_fields() const {
    for (const auto& [name, value] : fields_.json().items()) {
      const bool scaled = fields_.has("mscale_all_dim");
      bool is_known = name == "type" || name == "rope_type" ||
                      name == "original_max_position_embeddings" || value.is_null() ||
                      (scaled && (name == "mscale_all_dim" || name == "mscale"));
      for (const RopeKey& rope : kRopeKeys) is_known = is_known || name == rope.field;
      if (!is_known) return fields_.refused(name, "which GGUF files have no key for");
    }
    return ok_status();
  }

  JsonFields fields_;
  std::string architecture_;
  gguf::FileBuilder& builder_;
};

}  // namespace

void note_overrides(const ConfigOverrides& overrides, gguf::FileBuilder& builder) {
  builder.remove(kOverridesKey);
  if (overrides.empty()) return;
  builder.set_text(kOverridesKey, fmt::format("{}\n{}", overrides.fields, overrides.rope_scaling));
}

Status override_config(const ConfigOverrides& overrides, JsonValue& config) {
  if (!overrides.fields.empty()) {
    ASSIGN_OR_RETURN(const JsonValue patch, parse_object(overrides.fields, kFieldsName));
    const bool has_part = config.contains("text_config") && config["text_config"].is_object();
    for (const auto& [name, value] : patch.items()) {
      if (!has_part || config.contains(name)) continue;
      return Error{ErrorCode::kInvalidArgument,
                   fmt::format("{}: {} is no field of this model; those of its text are below "
                               "text_config",
                               kFieldsName, name)};
    }
    config.merge_patch(patch);
  }
  if (overrides.rope_scaling.empty()) return ok_status();
  return override_rotation(overrides.rope_scaling, config);
}

Result<gguf::File> override_file(const ConfigOverrides& overrides, gguf::File file) {
  if (!overrides.fields.empty()) {
    return Error{
        ErrorCode::kInvalidArgument,
        fmt::format("{}: {} is a GGUF file, which has no config.json; `rope_scaling` works "
                    "for both",
                    kFieldsName, file.path())};
  }
  if (overrides.rope_scaling.empty()) return file;
  ASSIGN_OR_RETURN(const JsonValue scaling, parse_object(overrides.rope_scaling, kRopeName));
  ASSIGN_OR_RETURN(const std::string_view architecture,
                   file.metadata().text("general.architecture"));
  const std::string name(architecture);
  ASSIGN_OR_RETURN(const std::uint64_t trained,
                   file.metadata().unsigned_value(name + ".context_length"));
  gguf::FileBuilder builder(std::move(file));
  RETURN_IF_ERROR(RotationKeys(scaling, name, builder).write(trained));
  builder.remove(kReplacedKey);
  builder.set_flag(kReplacedKey, true);
  note_overrides(overrides, builder);
  return std::move(builder).build();
}

}  // namespace pagoda::hf
