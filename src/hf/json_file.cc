#include "hf/json_file.h"

#include <fmt/format.h>

#include "gguf/printable.h"
#include "text/strict_json.h"

namespace pagoda::hf {
namespace {

constexpr std::size_t kShownBytesMax = 200;

}  // namespace

Result<JsonValue> read_json(gguf::FileBuilder& builder, const std::string& path) {
  ASSIGN_OR_RETURN(const gguf::MappedFile* const file, builder.open(path));
  const std::span<const std::byte> bytes = file->bytes();
  Result<JsonValue> json =
      text::parse_strict_json({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  if (json.ok()) return json;
  return Error{ErrorCode::kCorrupt, fmt::format("{}: {}", path, json.error().message)};
}

std::string shown(const JsonValue& value) {
  return gguf::printable(value.dump(-1, ' ', false, JsonValue::error_handler_t::replace),
                         kShownBytesMax);
}

Result<JsonFields> JsonFields::of(const JsonValue& value, std::string place) {
  if (value.is_object()) return JsonFields(value, std::move(place));
  return Error{ErrorCode::kCorrupt, fmt::format("{}{} is no object", place, shown(value))};
}

const JsonValue* JsonFields::find(std::string_view name) const {
  const auto found = object_->find(name);
  return found == object_->end() || found->is_null() ? nullptr : &*found;
}

Error JsonFields::missing(std::string_view name) const {
  return {ErrorCode::kNotFound, fmt::format("{}{} is missing", place_, name)};
}

Error JsonFields::wrong_type(std::string_view name, std::string_view expected) const {
  return {ErrorCode::kCorrupt,
          fmt::format("{}{} is {}, expected {}", place_, name, shown(*find(name)), expected)};
}

Error JsonFields::refused(std::string_view name, std::string_view why) const {
  const JsonValue* const value = find(name);
  return {ErrorCode::kUnsupported, fmt::format("{}{} is {}, {}", place_, name,
                                               value == nullptr ? "missing" : shown(*value), why)};
}

Result<std::uint64_t> JsonFields::count(std::string_view name) const {
  const JsonValue* const value = find(name);
  if (value == nullptr) return missing(name);
  if (!value->is_number_unsigned()) return wrong_type(name, "an integer from 0");
  return value->get<std::uint64_t>();
}

Result<std::uint64_t> JsonFields::count_or(std::string_view name, std::uint64_t fallback) const {
  if (!has(name)) return fallback;
  return count(name);
}

Result<double> JsonFields::number(std::string_view name) const {
  const JsonValue* const value = find(name);
  if (value == nullptr) return missing(name);
  if (!value->is_number()) return wrong_type(name, "a number");
  return value->get<double>();
}

Result<double> JsonFields::number_or(std::string_view name, double fallback) const {
  if (!has(name)) return fallback;
  return number(name);
}

Result<bool> JsonFields::flag_or(std::string_view name, bool fallback) const {
  const JsonValue* const value = find(name);
  if (value == nullptr) return fallback;
  if (!value->is_boolean()) return wrong_type(name, "true or false");
  return value->get<bool>();
}

Result<std::string> JsonFields::text_or(std::string_view name, std::string_view fallback) const {
  const JsonValue* const value = find(name);
  if (value == nullptr) return std::string(fallback);
  if (!value->is_string()) return wrong_type(name, "a string");
  return value->get<std::string>();
}

Result<std::vector<std::string>> JsonFields::texts(std::string_view name) const {
  const JsonValue* const value = find(name);
  std::vector<std::string> texts;
  if (value == nullptr) return texts;
  if (!value->is_array()) return wrong_type(name, "a list of strings");
  for (const JsonValue& text : *value) {
    if (!text.is_string()) return wrong_type(name, "a list of strings");
    texts.push_back(text.get<std::string>());
  }
  return texts;
}

Result<std::vector<std::uint64_t>> JsonFields::ids(std::string_view name) const {
  constexpr std::string_view kExpected = "an id or a list of ids";
  const JsonValue* const value = find(name);
  std::vector<std::uint64_t> ids;
  if (value == nullptr) return ids;
  const auto take = [&](const JsonValue& id) {
    if (id.is_number_unsigned()) ids.push_back(id.get<std::uint64_t>());
    return id.is_number_unsigned();
  };
  if (!value->is_array()) {
    if (!take(*value)) return wrong_type(name, kExpected);
    return ids;
  }
  for (const JsonValue& id : *value) {
    if (!take(id)) return wrong_type(name, kExpected);
  }
  return ids;
}

Result<std::optional<JsonFields>> JsonFields::object(std::string_view name) const {
  const JsonValue* const value = find(name);
  if (value == nullptr) return std::optional<JsonFields>();
  if (!value->is_object()) return wrong_type(name, "an object");
  return std::optional<JsonFields>(JsonFields(*value, fmt::format("{}{}.", place_, name)));
}

}  // namespace pagoda::hf
