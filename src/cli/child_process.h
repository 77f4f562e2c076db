// Other programs, run by their argument list: no shell reads it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"

namespace pagoda::cli {

// Returns the program's path in the folders of `path`, the variable PATH.
std::optional<std::string> find_program(const std::string& name, const std::string& path);

struct ChildOutcome {
  int exit_status = 0;  // of a signal 128 and its number, as shells have it
  std::string output;   // where it was asked for
};

// Runs a program (arguments[0] is its path) with this process's environment and streams, and waits
// for its end. Ctrl-C ends the program, and this process goes on. `keeps_output`: what it prints to
// stdout is returned (its first bytes) and not shown.
Result<ChildOutcome> run_child(const std::vector<std::string>& arguments, bool keeps_output);

}  // namespace pagoda::cli
