#include "app/sampling_defaults.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <string_view>

namespace pagoda::app {
namespace {

constexpr std::string_view kPrefix = "general.sampling.";

// Models whose authors recommend a sampling that their files do not hold, by general.name.
struct KnownModel {
  std::string_view name;
  double temperature;
  double top_p;
};

constexpr auto kKnownModels = std::to_array<KnownModel>({
    {"Smollm2 135M 8k Lc100K Mix1 Ep2", 0.2, 0.9},  // SmolLM2-135M-Instruct, the default model
    {"SmolLM2 135M Instruct", 0.2, 0.9},
});

struct Range {
  double low;
  double high;
  bool above_low;  // the lower end itself is outside
  std::string_view text;
};

constexpr Range kTemperature = {0, 100, false, "0 to 100"};
constexpr Range kTopP = {0, 1, true, "above 0, at most 1"};
constexpr Range kMinP = {0, 1, false, "0 to 1"};
constexpr Range kPenalty = {0, std::numeric_limits<float>::max(), true, "above 0, finite"};
constexpr Range kTopK = {-1, std::numeric_limits<std::int32_t>::max(), false, "a count, or -1"};

// False for NaN.
bool is_inside(double value, const Range& range) {
  return (range.above_low ? value > range.low : value >= range.low) && value <= range.high;
}

// A field by its name in the API, and the names it has in files (llama.cpp's first).
struct FieldRow {
  std::string_view name;
  std::array<std::string_view, 2> keys;
  Range range;
  std::optional<double> SamplingFields::*value;  // nullptr: top_k
};

constexpr auto kFields = std::to_array<FieldRow>({
    {"temperature", {"temp", "temperature"}, kTemperature, &SamplingFields::temperature},
    {"top_k", {"top_k", ""}, kTopK, nullptr},
    {"top_p", {"top_p", ""}, kTopP, &SamplingFields::top_p},
    {"min_p", {"min_p", ""}, kMinP, &SamplingFields::min_p},
    {"repetition_penalty",
     {"penalty_repeat", "repetition_penalty"},
     kPenalty,
     &SamplingFields::repetition_penalty},
});

// Files may name these samplers, which Pagoda does not have. 0 turns them off.
constexpr std::array<std::string_view, 2> kOtherSamplers = {"mirostat", "xtc_probability"};

void set_field(SamplingFields& fields, const FieldRow& row, double value) {
  if (row.value != nullptr) {
    fields.*row.value = value;
  } else {
    fields.top_k = value < 0 ? 0 : static_cast<std::uint32_t>(value);  // -1 is all, as in vLLM
  }
}

// A float of the file in the fewest digits that read back as it: 0.2, not 0.2000000030.
double as_written(const gguf::MetadataValue& value, double number) {
  if (value.type != gguf::ValueType::kF32) return number;
  const std::string digits = fmt::format("{}", static_cast<float>(number));
  std::from_chars(digits.data(), digits.data() + digits.size(), number);
  return number;
}

std::optional<double> number_at(const gguf::Metadata& metadata, const std::string& key,
                                std::vector<std::string>& warnings) {
  const gguf::MetadataValue* const value = metadata.find(key);
  if (value == nullptr) return std::nullopt;
  const Result<double> number = metadata.number_or(key, 0);
  if (number.ok()) return as_written(*value, number.value());
  warnings.push_back(number.error().message);
  return std::nullopt;
}

void read_field(const gguf::Metadata& metadata, const FieldRow& row, SamplingDefaults& defaults) {
  for (const std::string_view name : row.keys) {
    if (name.empty()) continue;
    const std::string key = fmt::format("{}{}", kPrefix, name);
    const std::optional<double> number = number_at(metadata, key, defaults.warnings);
    if (!number) continue;
    if (is_inside(*number, row.range)) {
      set_field(defaults.fields, row, *number);
      return;
    }
    defaults.warnings.push_back(fmt::format("{}: {} is {}, expected {}; it is left out",
                                            metadata.source(), key, *number, row.range.text));
  }
}

// llama.cpp's penalties are over the last tokens of a sequence, ours over all: 0 is none, -1 all.
void read_penalty_span(const gguf::Metadata& metadata, SamplingDefaults& defaults) {
  const std::string key = fmt::format("{}penalty_last_n", kPrefix);
  const std::optional<double> span = number_at(metadata, key, defaults.warnings);
  std::optional<double>& penalty = defaults.fields.repetition_penalty;
  if (!span || !penalty || *penalty == 1 || *span < 0) return;
  if (*span == 0) return penalty.reset();
  defaults.warnings.push_back(
      fmt::format("{}: {} is {}, but repetition_penalty is over all tokens of a sequence",
                  metadata.source(), key, *span));
}

Error bad_override(std::string_view what) {
  return {ErrorCode::kInvalidArgument, fmt::format("`override_generation_config`: {}", what)};
}

std::string field_names() {
  std::string names;
  for (const FieldRow& row : kFields)
    names += fmt::format("{}{}", names.empty() ? "" : ", ", row.name);
  return names;
}

Status read_override(const std::string& text, SamplingFields& fields) {
  const auto json = nlohmann::json::parse(text, nullptr, false);
  if (!json.is_object()) {
    return bad_override("is no JSON object such as {\"temperature\": 0.5}");
  }
  for (const auto& [name, value] : json.items()) {
    const auto row =
        std::find_if(kFields.begin(), kFields.end(),
                     [&name = name](const FieldRow& field) { return field.name == name; });
    if (row == kFields.end()) {
      return bad_override(fmt::format("has \"{}\", expected {}", name, field_names()));
    }
    const double number = value.is_number() ? value.get<double>() : std::nan("");
    if (!is_inside(number, row->range)) {
      return bad_override(
          fmt::format("{} is {}, expected {}", name, value.dump(), row->range.text));
    }
    set_field(fields, *row, number);
  }
  return ok_status();
}

}  // namespace

bool SamplingFields::any() const {
  return temperature || top_k || top_p || min_p || repetition_penalty;
}

void SamplingFields::apply_to(engine::SamplingParams& params) const {
  if (temperature) params.temperature = static_cast<float>(*temperature);
  if (top_k) params.top_k = *top_k;
  if (top_p) params.top_p = static_cast<float>(*top_p);
  if (min_p) params.min_p = static_cast<float>(*min_p);
  if (repetition_penalty) params.repetition_penalty = static_cast<float>(*repetition_penalty);
}

std::vector<std::pair<std::string, double>> SamplingFields::list() const {
  std::vector<std::pair<std::string, double>> set;
  for (const FieldRow& row : kFields) {
    if (row.value == nullptr && top_k) set.emplace_back(row.name, *top_k);
    if (row.value != nullptr && this->*row.value) set.emplace_back(row.name, *(this->*row.value));
  }
  return set;
}

std::string sampling_text(const SamplingFields& fields) {
  std::string text;
  for (const auto& [name, value] : fields.list()) {
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", name, value);
  }
  return text;
}

engine::SamplingParams SamplingDefaults::params(const engine::SamplingParams& otherwise) const {
  if (!fields.any()) return otherwise;
  engine::SamplingParams made;
  made.temperature = static_cast<float>(kOpenAiTemperature);
  fields.apply_to(made);
  return made;
}

SamplingDefaults file_sampling(const gguf::Metadata& metadata) {
  SamplingDefaults defaults;
  for (const FieldRow& row : kFields) read_field(metadata, row, defaults);
  read_penalty_span(metadata, defaults);
  for (const std::string_view name : kOtherSamplers) {
    const std::string key = fmt::format("{}{}", kPrefix, name);
    if (number_at(metadata, key, defaults.warnings).value_or(0) == 0) continue;
    defaults.warnings.push_back(
        fmt::format("{}: {} is not supported; it is left out", metadata.source(), key));
  }
  if (defaults.fields.any()) defaults.source = "the model's file";
  return defaults;
}

SamplingDefaults model_sampling(const gguf::Metadata& metadata) {
  SamplingDefaults defaults = file_sampling(metadata);
  if (defaults.fields.any()) return defaults;
  const Result<std::string_view> name = metadata.text_or("general.name", "");
  for (const KnownModel& model : kKnownModels) {
    if (!name.ok() || name.value() != model.name) continue;
    defaults.fields.temperature = model.temperature;
    defaults.fields.top_p = model.top_p;
    defaults.source = "its authors' recommendation";
  }
  return defaults;
}

Result<SamplingDefaults> with_generation_config(SamplingDefaults of_model,
                                                const GenerationConfig& config) {
  SamplingDefaults made = config.from_model ? std::move(of_model) : SamplingDefaults();
  if (config.override_json.empty()) return made;
  RETURN_IF_ERROR(read_override(config.override_json, made.fields));
  const char* const own = "`override_generation_config`";
  made.source = made.source.empty() ? own : fmt::format("{} and {}", made.source, own);
  return made;
}

}  // namespace pagoda::app
