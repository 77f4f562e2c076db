#include "terminal/messages.h"

#include <fmt/format.h>

#include <cstdio>

namespace pagoda::terminal {

void print_error(const std::string& message) { fmt::print(stderr, "error: {}\n", message); }
void print_warning(const std::string& message) { fmt::print(stderr, "warning: {}\n", message); }

}  // namespace pagoda::terminal
