// The words of a command that this program starts or shows.
#pragma once

#include <string>
#include <vector>

namespace pagoda::process {

// Returns the path of the program that runs; "pagoda" where the system does not say.
std::string own_program();

// Returns the words as one line that could be pasted into a shell.
std::string shell_line(const std::vector<std::string>& words);

}  // namespace pagoda::process
