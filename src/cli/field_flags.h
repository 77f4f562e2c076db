// The one place that maps a field that a message names (terminal/message_fields.h) to its flag.
#pragma once

#include <string>
#include <string_view>

namespace pagoda::cli {

// Returns the flag of a field, followed by a value unless that is empty: "--allowed-hosts my-name".
std::string flag_of(std::string_view field, std::string_view value);

// Replaces every field of a message by its flag: "`block_size`: is 8" becomes "--block-size: is 8",
// and "use `device=cpu`" becomes "use --device cpu".
std::string with_flags(std::string_view message);

}  // namespace pagoda::cli
