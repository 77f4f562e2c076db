// Starts other programs that end with this one and have none of its sockets and files.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"

namespace pagoda::process {

struct SpawnOptions {
  bool is_silent = false;  // it reads nothing, and what it writes is thrown away
  bool has_group = false;  // a process group of its own: Ctrl-C at the terminal is not for it
};

// Starts a program (words[0] is its path) with this process's environment and, of all its open
// files, the standard streams alone. The program is killed when the thread that called this ends,
// also where this process is killed: that thread must wait for the program.
Result<pid_t> spawn_program(const std::vector<std::string>& words, const SpawnOptions& options);

// Waits for a program's end and returns its exit status; of a signal 128 and its number, as shells
// have it. Nothing where nobody can know it: the process ignores SIGCHLD.
std::optional<int> wait_for_program(pid_t program);

}  // namespace pagoda::process
