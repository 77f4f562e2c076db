// Fields of chats under the names that another API has for them: errors name what the client sent.
#pragma once

#include <span>
#include <string_view>

#include "server/api_error.h"

namespace pagoda::server {

struct FieldName {
  std::string_view chat;
  std::string_view own;
};

// Returns the error with the field at fault, and the start of the message that names it, under the
// first of the names that it goes by.
ApiError renamed(const ApiError& error, std::span<const FieldName> names);

// Whether a text is a field, or begins with one whose path may go on behind its name.
bool names_field(std::string_view text, std::string_view field);

}  // namespace pagoda::server
