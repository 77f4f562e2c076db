#include "gguf/metadata.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <optional>

#include "base/assert.h"
#include "gguf/byte_reader.h"

namespace pagoda::gguf {
namespace {

constexpr std::array<std::string_view, 13> kTypeNames = {
    "u8", "i8", "u16", "i16", "u32", "i32", "f32", "bool", "string", "array", "u64", "i64", "f64"};

std::string type_text(const MetadataValue& value) {
  const Array* const array = std::get_if<Array>(&value.data);
  if (array == nullptr) return std::string(value_type_name(value.type));
  return fmt::format("array of {} {}", array->count, value_type_name(array->element_type));
}

bool is_integer(ValueType type) {
  switch (type) {
    case ValueType::kU8:
    case ValueType::kI8:
    case ValueType::kU16:
    case ValueType::kI16:
    case ValueType::kU32:
    case ValueType::kI32:
    case ValueType::kU64:
    case ValueType::kI64:
      return true;
    default:
      return false;
  }
}

bool is_float(ValueType type) { return type == ValueType::kF32 || type == ValueType::kF64; }

// Calls visit(const MetadataValue&) for the first elements, at most `limit`, with one MetadataValue
// at a time, which is 48 times the size of a u8.
template <class Visit>
void for_each_element(const Array& array, std::uint64_t limit, Visit visit) {
  const std::uint64_t count = std::min(array.count, limit);
  const std::byte* at = array.bytes.data();
  const std::byte* const end = at + array.bytes.size();
  for (std::uint64_t index = 0; index < count; ++index) {
    if (array.element_type == ValueType::kString) {
      const std::uint64_t size = load<std::uint64_t>(at);
      at += sizeof(size);
      ASSERT(size <= static_cast<std::uint64_t>(end - at), "the parser checked every text");
      visit(MetadataValue{ValueType::kString,
                          std::string_view(reinterpret_cast<const char*>(at), size)});
      at += size;
    } else {
      visit(load_scalar(array.element_type, at));
      at += scalar_bytes(array.element_type);
    }
  }
}

std::optional<std::int64_t> signed_integer(const MetadataValue& value) {
  if (const auto* const number = std::get_if<std::int64_t>(&value.data)) return *number;
  const std::uint64_t number = std::get<std::uint64_t>(value.data);
  if (number > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) {
    return std::nullopt;
  }
  return static_cast<std::int64_t>(number);
}

}  // namespace

std::string_view value_type_name(ValueType type) {
  const std::size_t index = static_cast<std::size_t>(type);
  ASSERT(index < kTypeNames.size(), "a ValueType holds one of its enumerators");
  return kTypeNames[index];
}

std::uint64_t scalar_bytes(ValueType type) {
  switch (type) {
    case ValueType::kU8:
    case ValueType::kI8:
    case ValueType::kBool:
      return 1;
    case ValueType::kU16:
    case ValueType::kI16:
      return 2;
    case ValueType::kU32:
    case ValueType::kI32:
    case ValueType::kF32:
      return 4;
    case ValueType::kU64:
    case ValueType::kI64:
    case ValueType::kF64:
      return 8;
    case ValueType::kString:
    case ValueType::kArray:
      break;
  }
  return 0;
}

MetadataValue load_scalar(ValueType type, const std::byte* bytes) {
  switch (type) {
    case ValueType::kU8:
      return {type, std::uint64_t{load<std::uint8_t>(bytes)}};
    case ValueType::kI8:
      return {type, std::int64_t{load<std::int8_t>(bytes)}};
    case ValueType::kU16:
      return {type, std::uint64_t{load<std::uint16_t>(bytes)}};
    case ValueType::kI16:
      return {type, std::int64_t{load<std::int16_t>(bytes)}};
    case ValueType::kU32:
      return {type, std::uint64_t{load<std::uint32_t>(bytes)}};
    case ValueType::kI32:
      return {type, std::int64_t{load<std::int32_t>(bytes)}};
    case ValueType::kF32:
      return {type, double{load<float>(bytes)}};
    case ValueType::kBool:
      return {type, load<std::uint8_t>(bytes) != 0};
    case ValueType::kU64:
      return {type, load<std::uint64_t>(bytes)};
    case ValueType::kI64:
      return {type, load<std::int64_t>(bytes)};
    case ValueType::kF64:
      return {type, load<double>(bytes)};
    case ValueType::kString:
    case ValueType::kArray:
      break;
  }
  ASSERT(false, "strings and arrays are not scalars");
}

std::vector<MetadataValue> elements(const Array& array, std::uint64_t limit) {
  std::vector<MetadataValue> result;
  result.reserve(std::min(array.count, limit));
  for_each_element(array, limit, [&](const MetadataValue& value) { result.push_back(value); });
  return result;
}

bool Metadata::insert(std::string_view key, MetadataValue value) {
  return entries_.emplace(key, value).second;
}

const MetadataValue* Metadata::find(std::string_view key) const {
  const auto found = entries_.find(key);
  return found == entries_.end() ? nullptr : &found->second;
}

Error Metadata::missing(std::string_view key) const {
  return {ErrorCode::kNotFound, fmt::format("{}: key '{}' is missing", source_, key)};
}

Error Metadata::wrong_type(std::string_view key, const MetadataValue& found,
                           std::string_view expected) const {
  return {ErrorCode::kCorrupt, fmt::format("{}: key '{}' has type {}, expected {}", source_, key,
                                           type_text(found), expected)};
}

Result<std::uint64_t> Metadata::unsigned_value(std::string_view key) const {
  const MetadataValue* const value = find(key);
  if (value == nullptr) return missing(key);
  if (const auto* const number = std::get_if<std::uint64_t>(&value->data)) return *number;
  const auto* const number = std::get_if<std::int64_t>(&value->data);
  if (number == nullptr) return wrong_type(key, *value, "an integer");
  if (*number < 0) {
    return Error{ErrorCode::kCorrupt,
                 fmt::format("{}: key '{}' is {}, expected 0 or more", source_, key, *number)};
  }
  return static_cast<std::uint64_t>(*number);
}

Result<std::uint64_t> Metadata::unsigned_value_or(std::string_view key,
                                                  std::uint64_t fallback) const {
  if (!contains(key)) return fallback;
  return unsigned_value(key);
}

Result<double> Metadata::number_or(std::string_view key, double fallback) const {
  const MetadataValue* const value = find(key);
  if (value == nullptr) return fallback;
  if (const auto* const number = std::get_if<double>(&value->data)) return *number;
  if (const auto* const number = std::get_if<std::uint64_t>(&value->data)) {
    return static_cast<double>(*number);
  }
  if (const auto* const number = std::get_if<std::int64_t>(&value->data)) {
    return static_cast<double>(*number);
  }
  return wrong_type(key, *value, "a number");
}

Result<bool> Metadata::flag_or(std::string_view key, bool fallback) const {
  const MetadataValue* const value = find(key);
  if (value == nullptr) return fallback;
  if (const auto* const flag = std::get_if<bool>(&value->data)) return *flag;
  return wrong_type(key, *value, "a bool");
}

Result<std::string_view> Metadata::text(std::string_view key) const {
  const MetadataValue* const value = find(key);
  if (value == nullptr) return missing(key);
  if (const auto* const text = std::get_if<std::string_view>(&value->data)) return *text;
  return wrong_type(key, *value, "a string");
}

Result<std::string_view> Metadata::text_or(std::string_view key, std::string_view fallback) const {
  if (!contains(key)) return fallback;
  return text(key);
}

Result<Array> Metadata::array(std::string_view key, std::string_view expected) const {
  const MetadataValue* const value = find(key);
  if (value == nullptr) return missing(key);
  if (const auto* const array = std::get_if<Array>(&value->data)) return *array;
  return wrong_type(key, *value, expected);
}

Result<std::vector<std::string_view>> Metadata::texts(std::string_view key) const {
  constexpr std::string_view kExpected = "an array of strings";
  ASSIGN_OR_RETURN(const Array array, this->array(key, kExpected));
  if (array.element_type != ValueType::kString) return wrong_type(key, *find(key), kExpected);
  std::vector<std::string_view> result;
  result.reserve(array.count);
  for_each_element(array, array.count, [&](const MetadataValue& value) {
    result.push_back(std::get<std::string_view>(value.data));
  });
  return result;
}

Result<std::vector<std::int64_t>> Metadata::integers(std::string_view key) const {
  constexpr std::string_view kExpected = "an integer or an array of integers";
  const MetadataValue* const value = find(key);
  if (value == nullptr) return missing(key);
  const bool is_array = value->type == ValueType::kArray;
  const Array one = {value->type, 1, {}};
  const Array& array = is_array ? std::get<Array>(value->data) : one;
  if (!is_integer(array.element_type)) return wrong_type(key, *value, kExpected);

  std::vector<std::int64_t> result;
  result.reserve(array.count);
  const auto take = [&](const MetadataValue& element) {
    const std::optional<std::int64_t> number = signed_integer(element);
    if (number) result.push_back(*number);
  };
  if (is_array) {
    for_each_element(array, array.count, take);
  } else {
    take(*value);
  }
  if (result.size() == array.count) return result;
  return Error{
      ErrorCode::kOutOfRange,
      fmt::format("{}: key '{}' holds an integer above the limit, 2^63 - 1", source_, key)};
}

Result<std::vector<float>> Metadata::floats(std::string_view key) const {
  constexpr std::string_view kExpected = "an array of floats";
  ASSIGN_OR_RETURN(const Array array, this->array(key, kExpected));
  if (!is_float(array.element_type)) return wrong_type(key, *find(key), kExpected);
  std::vector<float> result;
  result.reserve(array.count);
  for_each_element(array, array.count, [&](const MetadataValue& value) {
    result.push_back(static_cast<float>(std::get<double>(value.data)));
  });
  return result;
}

Result<std::vector<bool>> Metadata::flags(std::string_view key) const {
  constexpr std::string_view kExpected = "an array of bools";
  ASSIGN_OR_RETURN(const Array array, this->array(key, kExpected));
  if (array.element_type != ValueType::kBool) return wrong_type(key, *find(key), kExpected);
  std::vector<bool> result;
  result.reserve(array.count);
  for_each_element(array, array.count, [&](const MetadataValue& value) {
    result.push_back(std::get<bool>(value.data));
  });
  return result;
}

}  // namespace pagoda::gguf
