// The arguments of a call, and how they match the callee's parameters.
#pragma once

#include <cstddef>
#include <initializer_list>
#include <string_view>
#include <utility>
#include <vector>

#include "text/jinja/value.h"

namespace pagoda::text::jinja {

struct Arguments {
  std::vector<Value> positional;
  std::vector<std::pair<std::string_view, Value>> named;  // names in the template's source
};

// Parameters in order; those not given are undefined. Throws on arguments that match no parameter.
class BoundArguments {
 public:
  BoundArguments(std::string_view callee, const Arguments& arguments,
                 std::initializer_list<std::string_view> parameters);

  bool has(std::size_t parameter) const { return given_[parameter]; }
  const Value& operator[](std::size_t parameter) const { return values_[parameter]; }

  // These throw when the argument is missing or of another type.
  const OriginText& text(std::size_t parameter) const;
  bool flag_or(std::size_t parameter, bool otherwise) const;
  std::int64_t integer_or(std::size_t parameter, std::int64_t otherwise) const;
  void require(std::size_t parameter) const;

 private:
  std::string_view callee_;
  std::vector<std::string_view> names_;
  std::vector<Value> values_;
  std::vector<bool> given_;
};

}  // namespace pagoda::text::jinja
