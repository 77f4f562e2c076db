// What goes wrong, on stderr.
#pragma once

#include <string>

namespace pagoda::terminal {

// Prints "error: message".
void print_error(const std::string& message);
// Prints "warning: message".
void print_warning(const std::string& message);

}  // namespace pagoda::terminal
