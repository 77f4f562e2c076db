// Runs another program to its end and keeps what it wrote.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/result.h"

namespace pagoda::process {

struct ProgramOutput {
  int exit_status = 0;
  int signal = 0;  // that ended it; 0: none
  std::string out;
  std::string err;

  bool succeeded() const { return exit_status == 0 && signal == 0; }
  // "ended by signal 4 (Illegal instruction)", "ended with status 1: <last line of its stderr>"
  std::string end() const;
};

// words[0] is the program's path; its environment is ours, its stdin is empty. `stopped` is asked
// now and then: once true, the program is killed and an error comes back. Also an error when it
// cannot be started.
Result<ProgramOutput> run_program(const std::vector<std::string>& words,
                                  const std::function<bool()>& stopped);

}  // namespace pagoda::process
