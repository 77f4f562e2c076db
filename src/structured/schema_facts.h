// Reads the keywords of one JSON schema (draft 2020-12) without those of the schemas within it.
//
// A keyword is obeyed, known to be an annotation, or refused with its place: none is ignored.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "structured/number_nodes.h"

namespace pagoda::structured {

using SchemaJson = nlohmann::ordered_json;

// Bits of JsonTypes. A number is an integer or not.
inline constexpr std::uint8_t kNullType = 1;
inline constexpr std::uint8_t kBooleanType = 2;
inline constexpr std::uint8_t kObjectType = 4;
inline constexpr std::uint8_t kArrayType = 8;
inline constexpr std::uint8_t kStringType = 16;
inline constexpr std::uint8_t kIntegerType = 32;
inline constexpr std::uint8_t kFractionType = 64;
inline constexpr std::uint8_t kAllTypes = 127;

// Pointers are into the schema that was read.
struct SchemaFacts {
  bool is_never = false;  // the schema `false`
  std::uint8_t types = kAllTypes;
  const SchemaJson* enumeration = nullptr;  // the array of enum
  const SchemaJson* constant = nullptr;     // of const
  const std::string* ref = nullptr;
  const SchemaJson* all_of = nullptr;
  const SchemaJson* any_of = nullptr;
  const SchemaJson* one_of = nullptr;
  const SchemaJson* properties = nullptr;
  std::vector<std::string> required = {};
  const SchemaJson* additional = nullptr;
  const SchemaJson* prefix_items = nullptr;
  const SchemaJson* items = nullptr;
  std::uint32_t items_least = 0;
  std::uint32_t items_most = kUnbounded;
  std::uint32_t length_least = 0;
  std::uint32_t length_most = kUnbounded;
  NumberBounds numbers = {};
  const std::string* pattern = nullptr;
  const std::string* format = nullptr;
};

// Errors begin with the JSON pointer of a keyword within the schema; empty: of the schema itself.
Result<SchemaFacts> read_schema_facts(const SchemaJson& schema, bool is_outermost);

// "<path>/<name>", with the escapes of JSON pointers.
std::string pointer_to(std::string path, std::string_view name);
std::string pointer_to(std::string path, std::size_t index);
Error schema_error(const std::string& path, std::string_view what);

// The type of a value, as one bit.
std::uint8_t type_of_value(const SchemaJson& value);

}  // namespace pagoda::structured
