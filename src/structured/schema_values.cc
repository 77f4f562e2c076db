#include "structured/schema_values.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <string_view>
#include <utility>

#include "structured/decimal.h"

namespace pagoda::structured {
namespace {

// Appends a text that equal values have in common. Documents are parsed with a bounded depth.
void append_canonical(const SchemaJson& value, std::string& text) {
  if (value.is_object()) {
    std::vector<std::pair<std::string_view, const SchemaJson*>> members;
    for (const auto& [name, member] : value.items()) members.emplace_back(name, &member);
    std::sort(members.begin(), members.end());
    text += '{';
    for (const auto& [name, member] : members) {
      text += std::to_string(name.size()) + ":";
      text += name;
      append_canonical(*member, text);
    }
    text += '}';
  } else if (value.is_array()) {
    text += '[';
    for (const SchemaJson& element : value) append_canonical(element, text);
    text += ']';
  } else if (value.is_string()) {
    const std::string& inner = value.get_ref<const std::string&>();
    text += '"' + std::to_string(inner.size()) + ":";
    text += inner;
  } else {
    const std::optional<Decimal> number = value.is_number() ? decimal_of(value) : std::nullopt;
    text += number ? (number->negative ? "-" : "+") + number->whole + "." + number->fraction
                   : value.dump();
    text += ',';
  }
}

}  // namespace

ValueList values_of_both(const ValueList& a, const ValueList& b) {
  ValueList both;
  std::set_intersection(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(both));
  return both;
}

SchemaValue SchemaValues::add(const SchemaJson& value) {
  std::string text;
  append_canonical(value, text);
  const auto next = static_cast<std::uint32_t>(numbers_.size());
  return {numbers_.try_emplace(std::move(text), next).first->second, &value};
}

ValueList SchemaValues::add_all(const SchemaJson& array) {
  ValueList values;
  for (const SchemaJson& value : array) values.push_back(add(value));
  std::stable_sort(values.begin(), values.end());
  values.erase(std::unique(values.begin(), values.end()), values.end());
  return values;
}

}  // namespace pagoda::structured
