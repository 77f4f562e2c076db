// Names of options in messages. Folders below the command line know fields and no flags: a message
// names an option's field between backticks, as `block_size`, or with a value, as `device=cpu`.
// Text from outside, such as a path, does not go between the backticks, as it may hold one itself.
#pragma once

#include <functional>
#include <string>
#include <string_view>

namespace pagoda::terminal {

// A name of a-z, 0-9 and '_' that begins with a letter; its value holds no control characters.
struct MessageField {
  std::string_view text;   // between the backticks: "device=cpu"
  std::string_view name;   // "device"
  std::string_view value;  // "cpu"; empty: none
};

// Replaces every field of a message, its backticks included, by what `word` returns. All else
// stays, backticks around other text included.
std::string with_fields(std::string_view message,
                        const std::function<std::string(const MessageField&)>& word);

// Takes the backticks of fields away, for commands without flags for them: "`head_dim`: is 8"
// becomes "head_dim: is 8".
std::string with_plain_fields(std::string_view message);

}  // namespace pagoda::terminal
