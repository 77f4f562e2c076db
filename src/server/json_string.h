// A string as JSON, without a value in between.
#pragma once

#include <string>
#include <string_view>

namespace pagoda::server {

// Appends what dump_json makes of a string.
void append_json_string(std::string_view text, std::string& out);

}  // namespace pagoda::server
