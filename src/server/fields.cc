#include "server/fields.h"

#include <fmt/format.h>

#include <cmath>
#include <cstdlib>
#include <limits>

#include "server/api_error.h"

namespace pagoda::server {
namespace {

std::string_view article_and_type(const Json& value) {
  switch (value.type()) {
    case Json::value_t::null:
      return "null";
    case Json::value_t::boolean:
      return "a boolean";
    case Json::value_t::string:
      return "a string";
    case Json::value_t::array:
      return "an array";
    case Json::value_t::object:
      return "an object";
    default:
      return "a number";
  }
}

[[noreturn]] void refuse_range(const std::string& path, const Json& value, const auto& low,
                               const auto& high) {
  throw ApiError(400, fmt::format("{}: is {}, expected {} to {}", path, value.dump(), low, high),
                 path);
}

}  // namespace

std::string element_path(std::string_view array, std::size_t index) {
  return fmt::format("{}[{}]", array, index);
}

void refuse_type(const std::string& path, const Json& value, std::string_view expected) {
  throw ApiError(
      400, fmt::format("{}: is {}, expected {}", path, article_and_type(value), expected), path);
}

Fields::Fields(const Json& object, std::string path) : object_(&object), path_(std::move(path)) {
  if (!object.is_object()) refuse_type(path_.empty() ? "body" : path_, object, "an object");
}

const Json* Fields::find(std::string_view name) const {
  const auto found = object_->find(std::string(name));
  return found == object_->end() || found->is_null() ? nullptr : &*found;
}

const Json& Fields::require(std::string_view name) const {
  const Json* const value = find(name);
  if (value == nullptr) {
    throw ApiError(400, fmt::format("{}: is missing", path_of(name)), path_of(name));
  }
  return *value;
}

std::string Fields::path_of(std::string_view name) const {
  return path_.empty() ? std::string(name) : fmt::format("{}.{}", path_, name);
}

std::optional<bool> Fields::boolean(std::string_view name) const {
  const Json* const value = find(name);
  if (value == nullptr) return std::nullopt;
  if (!value->is_boolean()) refuse_type(path_of(name), *value, "true or false");
  return value->get<bool>();
}

std::optional<double> Fields::number(std::string_view name, double low, double high) const {
  const Json* const value = find(name);
  if (value == nullptr) return std::nullopt;
  return read_number(*value, path_of(name), low, high);
}

std::optional<std::int64_t> Fields::integer(std::string_view name, std::int64_t low,
                                            std::int64_t high) const {
  const Json* const value = find(name);
  if (value == nullptr) return std::nullopt;
  return read_integer(*value, path_of(name), low, high);
}

std::optional<std::string_view> Fields::text(std::string_view name) const {
  const Json* const value = find(name);
  if (value == nullptr) return std::nullopt;
  if (!value->is_string()) refuse_type(path_of(name), *value, "a string");
  return value->get_ref<const std::string&>();
}

std::string_view Fields::required_text(std::string_view name) const {
  require(name);
  return *text(name);
}

const Json* Fields::array(std::string_view name) const {
  const Json* const value = find(name);
  if (value != nullptr && !value->is_array()) refuse_type(path_of(name), *value, "an array");
  return value;
}

const Json* Fields::object(std::string_view name) const {
  const Json* const value = find(name);
  if (value != nullptr && !value->is_object()) refuse_type(path_of(name), *value, "an object");
  return value;
}

double read_number(const Json& value, const std::string& path, double low, double high) {
  if (!value.is_number()) refuse_type(path, value, "a number");
  const double number = value.get<double>();
  if (!(number >= low && number <= high)) refuse_range(path, value, low, high);
  return number;
}

std::int64_t read_integer(const Json& value, const std::string& path, std::int64_t low,
                          std::int64_t high) {
  if (value.is_number_float() && std::trunc(value.get<double>()) == value.get<double>()) {
    // Clients whose numbers are all floats write 2.0.
    read_number(value, path, static_cast<double>(low), static_cast<double>(high));
    constexpr double kExact = 1ll << 53;
    if (std::abs(value.get<double>()) <= kExact) return std::llround(value.get<double>());
  }
  if (!value.is_number_integer()) refuse_type(path, value, "an integer");
  const bool too_large = value.is_number_unsigned() &&
                         value.get<std::uint64_t>() > std::numeric_limits<std::int64_t>::max();
  if (too_large || value.get<std::int64_t>() < low || value.get<std::int64_t>() > high) {
    refuse_range(path, value, low, high);
  }
  return value.get<std::int64_t>();
}

std::vector<TokenId> read_tokens(const Json& array, const std::string& path,
                                 std::size_t tokens_max) {
  if (!array.is_array()) refuse_type(path, array, "an array of token ids");
  if (array.size() > tokens_max) {
    throw ApiError(
        400, fmt::format("{}: has {} tokens, expected at most {}", path, array.size(), tokens_max),
        path);
  }
  std::vector<TokenId> tokens;
  tokens.reserve(array.size());
  constexpr std::uint32_t kTokenMax = std::numeric_limits<std::uint32_t>::max();
  for (const Json& element : array) {
    const bool fits = element.is_number_unsigned() && element.get<std::uint64_t>() <= kTokenMax;
    if (!fits) read_integer(element, element_path(path, tokens.size()), 0, kTokenMax);
    tokens.emplace_back(static_cast<std::uint32_t>(element.get<std::uint64_t>()));
  }
  return tokens;
}

}  // namespace pagoda::server
