// A program that works in the idle time of this one.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"

namespace pagoda::process {

struct IdleWork {
  std::vector<std::string> words;  // words[0] is the program's path
  std::chrono::milliseconds work_max{60'000};
  // From its start to its end: one that is halted keeps its memory.
  std::chrono::milliseconds wall_max{1'800'000};
  std::function<bool()> is_idle;           // may the program run now? asked every few milliseconds
  std::function<bool()> stopped;           // asked likewise; true: the program is killed
  std::function<Status()> may_start = {};  // asked once, when the program is about to start
};

enum class IdleEnd {
  kDone,
  kFailed,
  kTooLong,  // it worked for work_max
  kTooBusy,  // it was halted for most of wall_max
  kStopped,
};

// Runs a program, with its output thrown away, while `is_idle` says so, and halts it (SIGSTOP) as
// soon as it does not. Only the time in which it ran counts as work. It ends with this process
// (spawned_program.h). Call on a thread that waits.
Result<IdleEnd> run_while_idle(const IdleWork& work);

}  // namespace pagoda::process
