#include "server/api/field_names.h"

#include <algorithm>
#include <string>

namespace pagoda::server {

bool names_field(std::string_view text, std::string_view field) {
  if (!text.starts_with(field)) return false;
  const std::string_view rest = text.substr(field.size());
  return rest.empty() || rest.front() == '.' || rest.front() == '[' || rest.front() == ':' ||
         rest.front() == ' ';
}

ApiError renamed(const ApiError& error, std::span<const FieldName> names) {
  const auto found = std::find_if(names.begin(), names.end(), [&](const FieldName& name) {
    return names_field(error.param, name.chat);
  });
  if (found == names.end()) return error;
  const auto rename = [&](std::string text) {
    if (names_field(text, found->chat)) text.replace(0, found->chat.size(), found->own);
    return text;
  };
  return {error.status, rename(error.message), rename(error.param), error.code};
}

}  // namespace pagoda::server
