#include "cli/field_flags.h"

#include "terminal/message_fields.h"

namespace pagoda::cli {

std::string flag_of(std::string_view field, std::string_view value) {
  std::string flag = "--";
  for (const char c : field) flag += c == '_' ? '-' : c;
  if (!value.empty()) flag += ' ';
  return flag += value;
}

std::string with_flags(std::string_view message) {
  return terminal::with_fields(message, [](const terminal::MessageField& field) {
    return flag_of(field.name, field.value);
  });
}

}  // namespace pagoda::cli
