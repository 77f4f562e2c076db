// Errors, warnings and notes on stderr, and how they are worded.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace pagoda::terminal {

// Prints "error: message".
void print_error(std::string_view message);
// Prints "warning: message".
void print_warning(std::string_view message);
// Prints the message alone: what was done that took a while.
void print_note(std::string_view message);

// Sets how messages are worded: folders below the command line name fields between backticks, which
// a command line replaces by its flags. Call once, before the first message.
void set_wording(std::string (*wording)(std::string_view message));
// Returns a message as the functions above print it, for lines of stdout.
std::string worded(std::string_view message);

// "1 token", "2 tokens".
std::string counted(std::uint64_t count, std::string_view noun);

}  // namespace pagoda::terminal
