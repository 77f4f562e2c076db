// JSON files of a Hugging Face folder, and their fields with the file's and the field's name in
// every error.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "gguf/file_builder.h"

namespace pagoda::hf {

using JsonValue = nlohmann::ordered_json;

// Opens a file as a part of the model and parses it within the limits of text/strict_json.h.
Result<JsonValue> read_json(gguf::FileBuilder& builder, const std::string& path);

// A JSON object. A field that is null counts as absent, as it does in transformers. The object must
// outlive the JsonFields.
class JsonFields {
 public:
  // `place` names the object in messages: "models/x/config.json: rope_scaling.".
  JsonFields(const JsonValue& object, std::string place)
      : object_(&object), place_(std::move(place)) {}
  // An error when `value` is no object.
  static Result<JsonFields> of(const JsonValue& value, std::string place);

  // Returns nullptr when the field is absent or null.
  const JsonValue* find(std::string_view name) const;
  bool has(std::string_view name) const { return find(name) != nullptr; }
  // Is the field there, be it null?
  bool contains(std::string_view name) const { return object_->contains(name); }

  Result<std::uint64_t> count(std::string_view name) const;
  Result<std::uint64_t> count_or(std::string_view name, std::uint64_t fallback) const;
  Result<double> number(std::string_view name) const;
  Result<double> number_or(std::string_view name, double fallback) const;
  Result<bool> flag_or(std::string_view name, bool fallback) const;
  Result<std::string> text_or(std::string_view name, std::string_view fallback) const;
  Result<std::vector<std::string>> texts(std::string_view name) const;
  // Reads one id or a list of them; an absent field is an empty list.
  Result<std::vector<std::uint64_t>> ids(std::string_view name) const;
  // Nothing when the field is absent.
  Result<std::optional<JsonFields>> object(std::string_view name) const;

  Error missing(std::string_view name) const;
  Error wrong_type(std::string_view name, std::string_view expected) const;
  // "PLACEname is VALUE, reason".
  Error refused(std::string_view name, std::string_view why) const;
  const std::string& place() const { return place_; }
  const JsonValue& json() const { return *object_; }

 private:
  const JsonValue* object_;
  std::string place_;
};

// A value as a message shows it, cut where it is long.
std::string shown(const JsonValue& value);

}  // namespace pagoda::hf
