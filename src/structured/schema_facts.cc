#include "structured/schema_facts.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "structured/string_formats.h"

namespace pagoda::structured {
namespace {

constexpr std::size_t kPropertiesMax = 2000;
constexpr std::size_t kPropertyBytesMax = 1024;
constexpr std::size_t kValuesMax = 10000;
constexpr std::size_t kBranchesMax = 500;
constexpr std::size_t kPrefixItemsMax = 500;

struct NamedType {
  std::string_view name;
  std::uint8_t types;
};

constexpr std::array<NamedType, 7> kTypes = {{{"null", kNullType},
                                              {"boolean", kBooleanType},
                                              {"object", kObjectType},
                                              {"array", kArrayType},
                                              {"string", kStringType},
                                              {"integer", kIntegerType},
                                              {"number", kIntegerType | kFractionType}}};

// OpenAPI's formats of numbers, and the bounds they mean. Integers have 64 bits anyway.
struct NumberFormat {
  std::string_view name;
  std::int64_t low;
  std::int64_t high;  // low: there are no bounds
};

constexpr std::array<NumberFormat, 4> kNumberFormats = {
    {{"int32", INT32_MIN, INT32_MAX}, {"int64", 0, 0}, {"float", 0, 0}, {"double", 0, 0}}};

constexpr std::array<std::string_view, 18> kAnnotations = {
    "$schema",       "$comment",      "$defs",       "definitions",     "title",
    "description",   "default",       "examples",    "example",         "deprecated",
    "readOnly",      "writeOnly",     "$vocabulary", "contentEncoding", "contentMediaType",
    "contentSchema", "discriminator", "externalDocs"};

class FactsReader {
 public:
  FactsReader(const SchemaJson& schema, bool is_outermost)
      : schema_(schema), is_outermost_(is_outermost) {}

  Result<SchemaFacts> read_all() {
    if (schema_.is_boolean()) {
      facts_.is_never = !schema_.get<bool>();
      return std::move(facts_);
    }
    if (!schema_.is_object()) return error("a schema is an object or a boolean");
    for (const auto& [name, value] : schema_.items()) {
      at_ = name;
      RETURN_IF_ERROR(read_keyword(name, value));
    }
    return std::move(facts_);
  }

 private:
  using Handler = Status (FactsReader::*)(const SchemaJson&);
  struct Keyword {
    std::string_view name;
    Handler handler;
  };

  static const std::vector<Keyword>& keywords() {
    static const std::vector<Keyword> kTable = {
        {"type", &FactsReader::read_type},
        {"enum", &FactsReader::read_enum},
        {"const", &FactsReader::read_const},
        {"$ref", &FactsReader::read_ref},
        {"$id", &FactsReader::read_id},
        {"allOf", &FactsReader::read_all_of},
        {"anyOf", &FactsReader::read_any_of},
        {"oneOf", &FactsReader::read_one_of},
        {"properties", &FactsReader::read_properties},
        {"required", &FactsReader::read_required},
        {"additionalProperties", &FactsReader::read_additional},
        {"prefixItems", &FactsReader::read_prefix_items},
        {"items", &FactsReader::read_items},
        {"minItems", &FactsReader::read_min_items},
        {"maxItems", &FactsReader::read_max_items},
        {"uniqueItems", &FactsReader::read_unique_items},
        {"minLength", &FactsReader::read_min_length},
        {"maxLength", &FactsReader::read_max_length},
        {"minimum", &FactsReader::read_minimum},
        {"maximum", &FactsReader::read_maximum},
        {"exclusiveMinimum", &FactsReader::read_exclusive_minimum},
        {"exclusiveMaximum", &FactsReader::read_exclusive_maximum},
        {"multipleOf", &FactsReader::read_multiple_of},
        {"pattern", &FactsReader::read_pattern},
        {"format", &FactsReader::read_format},
    };
    return kTable;
  }

  Status read_keyword(const std::string& name, const SchemaJson& value) {
    for (const Keyword& keyword : keywords()) {
      if (keyword.name == name) return (this->*keyword.handler)(value);
    }
    if (std::find(kAnnotations.begin(), kAnnotations.end(), name) != kAnnotations.end()) {
      return ok_status();
    }
    return error("this keyword is not supported");
  }

  Error error(std::string_view what) const {
    return {ErrorCode::kInvalidArgument,
            fmt::format("{}: {}", at_.empty() ? "" : pointer_to("", at_), what)};
  }

  Status add_type(const SchemaJson& name, std::uint8_t& types) {
    for (const NamedType& type : kTypes) {
      if (!name.is_string() || name.get_ref<const std::string&>() != type.name) continue;
      types |= type.types;
      return ok_status();
    }
    return error("expected null, boolean, object, array, string, integer or number");
  }

  Status read_type(const SchemaJson& value) {
    std::uint8_t types = 0;
    if (value.is_array()) {
      for (const SchemaJson& name : value) RETURN_IF_ERROR(add_type(name, types));
    } else {
      RETURN_IF_ERROR(add_type(value, types));
    }
    facts_.types &= types;
    return ok_status();
  }

  Status read_enum(const SchemaJson& value) {
    if (!value.is_array()) return error("expected an array");
    if (value.size() > kValuesMax) {
      return error(fmt::format("has {} values, expected at most {}", value.size(), kValuesMax));
    }
    RETURN_IF_ERROR(check_numbers(value));
    facts_.enumeration = &value;
    return ok_status();
  }
  // Refuses integers beyond 64 bits: the parser keeps them as rounded doubles with more digits than
  // are exact. The recursion is bounded because documents are parsed with a bounded depth.
  Status check_numbers(const SchemaJson& value) {
    constexpr double kTooLarge = 9.2e18;
    constexpr std::ptrdiff_t kExactDigits = 15;
    if (value.is_number_float() && std::abs(value.get<double>()) >= kTooLarge) {
      const std::string text = value.dump();
      const auto end =
          text.begin() + static_cast<std::ptrdiff_t>(std::min(text.find('e'), text.size()));
      const auto digits =
          std::count_if(text.begin(), end, [](char c) { return c >= '0' && c <= '9'; });
      if (digits > kExactDigits) return error("integers beyond 64 bits are not supported here");
    }
    if (!value.is_structured()) return ok_status();
    for (const SchemaJson& element : value) RETURN_IF_ERROR(check_numbers(element));
    return ok_status();
  }
  Status read_const(const SchemaJson& value) {
    RETURN_IF_ERROR(check_numbers(value));
    facts_.constant = &value;
    return ok_status();
  }

  Status read_text(const SchemaJson& value, const std::string*& target) {
    if (!value.is_string()) return error("expected a string");
    target = &value.get_ref<const std::string&>();
    return ok_status();
  }
  Status read_ref(const SchemaJson& value) { return read_text(value, facts_.ref); }
  Status read_pattern(const SchemaJson& value) { return read_text(value, facts_.pattern); }
  Status read_format(const SchemaJson& value) {
    const std::string* format = nullptr;
    RETURN_IF_ERROR(read_text(value, format));
    for (const NumberFormat& number : kNumberFormats) {
      if (*format == number.name) return read_number_format(number);
    }
    facts_.format = format;
    if (format_pattern(*format)) return ok_status();
    return error(fmt::format("this format is not supported; expected one of {}", known_formats()));
  }
  Status read_number_format(const NumberFormat& format) {
    if (format.low == format.high) return ok_status();
    RETURN_IF_ERROR(read_low(format.low, false));
    return read_high(format.high, false);
  }
  // References are relative to the whole schema, so that its own address changes nothing.
  Status read_id(const SchemaJson& /*value*/) {
    return is_outermost_ ? ok_status() : Status(error("is supported in the outermost schema only"));
  }

  Status read_branches(const SchemaJson& value, const SchemaJson*& target) {
    if (!value.is_array() || value.empty()) return error("expected an array of schemas");
    if (value.size() > kBranchesMax) {
      return error(fmt::format("has {} schemas, expected at most {}", value.size(), kBranchesMax));
    }
    target = &value;
    return ok_status();
  }
  Status read_all_of(const SchemaJson& value) { return read_branches(value, facts_.all_of); }
  Status read_any_of(const SchemaJson& value) { return read_branches(value, facts_.any_of); }
  Status read_one_of(const SchemaJson& value) { return read_branches(value, facts_.one_of); }

  Status read_properties(const SchemaJson& value) {
    if (!value.is_object()) return error("expected an object of schemas");
    if (value.size() > kPropertiesMax) {
      return error(
          fmt::format("has {} properties, expected at most {}", value.size(), kPropertiesMax));
    }
    for (const auto& [name, schema] : value.items()) RETURN_IF_ERROR(check_name(name));
    facts_.properties = &value;
    return ok_status();
  }
  Status check_name(const std::string& name) {
    if (name.size() <= kPropertyBytesMax) return ok_status();
    return error(
        fmt::format("has a name of {} bytes, expected at most {}", name.size(), kPropertyBytesMax));
  }
  Status read_required(const SchemaJson& value) {
    if (!value.is_array() || value.size() > kPropertiesMax) {
      return error(fmt::format("expected an array of at most {} names", kPropertiesMax));
    }
    for (const SchemaJson& name : value) {
      if (!name.is_string()) return error("expected names");
      RETURN_IF_ERROR(check_name(name.get_ref<const std::string&>()));
      facts_.required.push_back(name.get<std::string>());
    }
    return ok_status();
  }
  Status read_additional(const SchemaJson& value) {
    facts_.additional = &value;
    return ok_status();
  }
  Status read_prefix_items(const SchemaJson& value) {
    if (!value.is_array() || value.size() > kPrefixItemsMax) {
      return error(fmt::format("expected an array of at most {} schemas", kPrefixItemsMax));
    }
    facts_.prefix_items = &value;
    return ok_status();
  }
  Status read_items(const SchemaJson& value) {
    if (value.is_array()) return error("an array of schemas is written as prefixItems");
    facts_.items = &value;
    return ok_status();
  }

  Status read_count(const SchemaJson& value, std::uint32_t& target) {
    const bool is_whole =
        value.is_number_integer() ||
        (value.is_number() && std::floor(value.get<double>()) == value.get<double>());
    if (!is_whole || value.get<double>() < 0 || value.get<double>() > 1e9) {
      return error("expected an integer from 0 to 1000000000");
    }
    target = value.get<std::uint32_t>();
    return ok_status();
  }
  Status read_min_items(const SchemaJson& value) { return read_count(value, facts_.items_least); }
  Status read_max_items(const SchemaJson& value) { return read_count(value, facts_.items_most); }
  Status read_min_length(const SchemaJson& value) { return read_count(value, facts_.length_least); }
  Status read_max_length(const SchemaJson& value) { return read_count(value, facts_.length_most); }
  Status read_unique_items(const SchemaJson& value) {
    if (value.is_boolean() && !value.get<bool>()) return ok_status();
    return error("this keyword is not supported");
  }

  Result<Decimal> read_decimal(const SchemaJson& value) {
    if (!value.is_number()) return error("expected a number");
    std::optional<Decimal> decimal = decimal_of(value);
    if (!decimal) return error("the number has too many digits");
    return *std::move(decimal);
  }
  Status read_low(const SchemaJson& value, bool excluded) {
    ASSIGN_OR_RETURN(Decimal decimal, read_decimal(value));
    narrow_low(facts_.numbers.low, {std::move(decimal), excluded});
    return ok_status();
  }
  Status read_high(const SchemaJson& value, bool excluded) {
    ASSIGN_OR_RETURN(Decimal decimal, read_decimal(value));
    narrow_high(facts_.numbers.high, {std::move(decimal), excluded});
    return ok_status();
  }
  Status read_minimum(const SchemaJson& value) { return read_low(value, false); }
  Status read_maximum(const SchemaJson& value) { return read_high(value, false); }
  Status read_exclusive_minimum(const SchemaJson& value) { return read_low(value, true); }
  Status read_exclusive_maximum(const SchemaJson& value) { return read_high(value, true); }
  Status read_multiple_of(const SchemaJson& value) {
    ASSIGN_OR_RETURN(facts_.numbers.multiple_of, read_decimal(value));
    if (facts_.numbers.multiple_of->negative || facts_.numbers.multiple_of->is_zero()) {
      return error("expected a number above 0");
    }
    return ok_status();
  }

  const SchemaJson& schema_;
  bool is_outermost_;
  std::string_view at_;  // the keyword; empty: none is read yet
  SchemaFacts facts_;
};

}  // namespace

std::string pointer_to(std::string path, std::string_view name) {
  std::string pointer = std::move(path);
  pointer += '/';
  for (const char c : name) {
    if (c == '~') {
      pointer += "~0";
    } else if (c == '/') {
      pointer += "~1";
    } else {
      pointer += c;
    }
  }
  return pointer;
}

std::string pointer_to(std::string path, std::size_t index) {
  return pointer_to(std::move(path), std::to_string(index));
}

Error schema_error(const std::string& path, std::string_view what) {
  return {ErrorCode::kInvalidArgument, fmt::format("{}: {}", path.empty() ? "#" : path, what)};
}

Result<SchemaFacts> read_schema_facts(const SchemaJson& schema, bool is_outermost) {
  return FactsReader(schema, is_outermost).read_all();
}

std::uint8_t type_of_value(const SchemaJson& value) {
  if (value.is_null()) return kNullType;
  if (value.is_boolean()) return kBooleanType;
  if (value.is_object()) return kObjectType;
  if (value.is_array()) return kArrayType;
  if (value.is_string()) return kStringType;
  if (value.is_number_integer()) return kIntegerType;
  const double number = value.get<double>();
  return std::floor(number) == number ? kIntegerType : kFractionType;
}

}  // namespace pagoda::structured
