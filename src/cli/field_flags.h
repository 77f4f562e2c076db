// Names of options in errors. Folders below the command line know fields ("block_size") and no
// flags; this is the one place that maps a field to its flag ("--block-size").
#pragma once

#include <string>
#include <string_view>

namespace pagoda::cli {

// Replaces every field of the table in a message by its flag: "block_size: is 8" becomes
// "--block-size: is 8", and "use device=cpu" becomes "use --device cpu". A field without '_' is a
// plain word, too, and is replaced only before '=' and, at the beginning, before ':'.
std::string with_flags(std::string_view message);

}  // namespace pagoda::cli
