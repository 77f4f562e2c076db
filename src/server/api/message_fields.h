// Checks the messages and tools of a chat, whose errors name the path of what is wrong.
#pragma once

#include <string>

#include "server/fields.h"
#include "server/json.h"

namespace pagoda::server {

// Checks `messages`: roles, contents, tool calls of assistants, and that every tool's result
// answers a call. Throws ApiError.
void check_messages(const Fields& fields);
// Checks `tools`. Throws ApiError.
void check_tools(const Fields& fields);
// Reads an array of objects, as templates expect of `documents` and the like; nullptr when absent.
const Json* read_objects(const Fields& fields, std::string_view name);

}  // namespace pagoda::server
