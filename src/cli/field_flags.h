// Names of options in errors. Folders below the command line know fields and no flags: a message
// names an option's field between backticks, as `block_size`, or with a value, as `device=cpu`.
// This is the one place that maps a field to its flag. Text from outside, such as a path, does not
// go between the backticks, as it may hold one itself.
#pragma once

#include <string>
#include <string_view>

namespace pagoda::cli {

// Returns the flag of a field, followed by a value unless that is empty: "--allowed-hosts my-name".
std::string flag_of(std::string_view field, std::string_view value);

// Replaces every field of a message by its flag: "`block_size`: is 8" becomes "--block-size: is 8",
// and "use `device=cpu`" becomes "use --device cpu". A field is a name of a-z, 0-9 and '_' that
// begins with a letter; its value holds no control characters. All else stays, backticks around
// other text included.
std::string with_flags(std::string_view message);

// Takes the backticks of fields away, for commands without flags for them: "`head_dim`: is 8"
// becomes "head_dim: is 8".
std::string with_plain_fields(std::string_view message);

}  // namespace pagoda::cli
