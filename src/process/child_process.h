// Other programs that talk to the terminal themselves, run by their argument list: no shell reads
// it. program_output.h keeps what a program writes instead.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"

namespace pagoda::process {

// Returns the program's path in the folders of `path`, the variable PATH.
std::optional<std::string> find_program(const std::string& name, const std::string& path);

// Runs a program (arguments[0] is its path) with this process's environment and streams, and waits
// for its end. Ctrl-C ends the program, and this process goes on; the end of this process ends the
// program (spawned_program.h). Returns the exit status; of a signal 128 and its number, as shells
// have it.
Result<int> run_child(const std::vector<std::string>& arguments);

}  // namespace pagoda::process
