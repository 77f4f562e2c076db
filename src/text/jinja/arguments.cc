#include "text/jinja/arguments.h"

#include <fmt/format.h>

#include <algorithm>

namespace pagoda::text::jinja {

BoundArguments::BoundArguments(std::string_view callee, const Arguments& arguments,
                               std::initializer_list<std::string_view> parameters)
    : callee_(callee),
      names_(parameters),
      values_(parameters.size()),
      given_(parameters.size(), false) {
  if (arguments.positional.size() > names_.size()) {
    fail(fmt::format("{} takes at most {} arguments, was given {}", callee_, names_.size(),
                     arguments.positional.size()));
  }
  for (std::size_t i = 0; i < arguments.positional.size(); ++i) {
    values_[i] = arguments.positional[i];
    given_[i] = true;
  }
  for (const auto& [name, value] : arguments.named) {
    const auto found = std::find(names_.begin(), names_.end(), name);
    if (found == names_.end()) fail(fmt::format("{} takes no argument '{}'", callee_, name));
    const auto parameter = static_cast<std::size_t>(found - names_.begin());
    if (given_[parameter]) fail(fmt::format("{} was given '{}' twice", callee_, name));
    values_[parameter] = value;
    given_[parameter] = true;
  }
}

void BoundArguments::require(std::size_t parameter) const {
  if (!given_[parameter]) fail(fmt::format("{} needs '{}'", callee_, names_[parameter]));
}

const OriginText& BoundArguments::text(std::size_t parameter) const {
  require(parameter);
  if (!values_[parameter].is_text()) {
    fail(fmt::format("{}: '{}' is a {}, not a string", callee_, names_[parameter],
                     values_[parameter].type_name()));
  }
  return values_[parameter].as_text();
}

bool BoundArguments::flag_or(std::size_t parameter, bool otherwise) const {
  return given_[parameter] ? values_[parameter].truthy() : otherwise;
}

std::int64_t BoundArguments::integer_or(std::size_t parameter, std::int64_t otherwise) const {
  if (!given_[parameter] || values_[parameter].is_none()) return otherwise;
  if (!values_[parameter].is_integral()) {
    fail(fmt::format("{}: '{}' is a {}, not an integer", callee_, names_[parameter],
                     values_[parameter].type_name()));
  }
  return values_[parameter].as_integer();
}

}  // namespace pagoda::text::jinja
