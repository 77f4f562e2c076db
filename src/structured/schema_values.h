// SchemaValues numbers the values of a schema's enum and const, so that equal values, such as 1 and
// 1.0 or objects whose members differ in their order, have one number.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "structured/schema_facts.h"

namespace pagoda::structured {

struct SchemaValue {
  std::uint32_t number = 0;
  const SchemaJson* json = nullptr;

  // By number alone.
  friend bool operator<(const SchemaValue& a, const SchemaValue& b) { return a.number < b.number; }
  friend bool operator==(const SchemaValue& a, const SchemaValue& b) {
    return a.number == b.number;
  }
};

// Ascending, each value once.
using ValueList = std::vector<SchemaValue>;

// Returns the values of both lists.
ValueList values_of_both(const ValueList& a, const ValueList& b);

class SchemaValues {
 public:
  // Adds the value under the number of its equals. Takes time in the order of its text.
  SchemaValue add(const SchemaJson& value);
  ValueList add_all(const SchemaJson& array);

 private:
  std::map<std::string, std::uint32_t> numbers_;  // by canonical text
};

}  // namespace pagoda::structured
