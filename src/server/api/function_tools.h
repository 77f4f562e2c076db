// Tools of APIs that write functions flat, {"name", "description", SCHEMA, "strict"}, as a chat's.
#pragma once

#include <string>

#include "server/api/translated_chat.h"
#include "server/json.h"

namespace pagoda::server {

// How an API writes its tools.
struct FunctionToolStyle {
  const char* schema;  // the member that holds the schema of the arguments
  bool needs_schema = false;
  bool needs_type = false;            // false: a tool without a type is a function
  const char* function = "function";  // the type of functions
};

// Moves the functions of body["tools"] to the chat's. Tools of other types run on the servers of
// those who offer them, or need grammars: they are left out. Throws ApiError.
void take_function_tools(Json& body, const FunctionToolStyle& style, TranslationMemory& memory,
                         TranslatedChat& chat);

}  // namespace pagoda::server
