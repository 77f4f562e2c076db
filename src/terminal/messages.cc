#include "terminal/messages.h"

#include <fmt/format.h>

#include <cstdio>

namespace pagoda::terminal {
namespace {

std::string unchanged(std::string_view message) { return std::string(message); }

std::string (*wording)(std::string_view) = unchanged;

}  // namespace

void set_wording(std::string (*chosen)(std::string_view message)) { wording = chosen; }

std::string worded(std::string_view message) { return wording(message); }

std::string counted(std::uint64_t count, std::string_view noun) {
  return fmt::format("{} {}{}", count, noun, count == 1 ? "" : "s");
}

void print_error(std::string_view message) { fmt::print(stderr, "error: {}\n", wording(message)); }
void print_warning(std::string_view message) {
  fmt::print(stderr, "warning: {}\n", wording(message));
}
void print_note(std::string_view message) { fmt::print(stderr, "{}\n", wording(message)); }

}  // namespace pagoda::terminal
