// Serialises a string as JSON without a Json value in between.
#pragma once

#include <string>
#include <string_view>

namespace pagoda::server {

// Appends the same bytes that dump_json gives for a string.
void append_json_string(std::string_view text, std::string& out);

}  // namespace pagoda::server
