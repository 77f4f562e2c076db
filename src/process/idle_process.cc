#include "process/idle_process.h"

#include <sys/wait.h>

#include <cerrno>
#include <csignal>
#include <thread>

#include "process/spawned_program.h"

namespace pagoda::process {
namespace {

using IdleClock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds kLookRunning{2};
constexpr std::chrono::milliseconds kLookHalted{50};
// A pause between two requests is no idle time yet.
constexpr std::chrono::milliseconds kQuietBefore{1000};

// The program, killed and waited for when this goes.
class IdleChild {
 public:
  explicit IdleChild(pid_t child) : child_(child) {}
  ~IdleChild() {
    if (!is_running_) return;
    signal(SIGKILL);
    wait_for_program(child_);
  }
  IdleChild(const IdleChild&) = delete;
  IdleChild& operator=(const IdleChild&) = delete;

  void halt() const { signal(SIGSTOP); }
  void go_on() const { signal(SIGCONT); }
  // Nothing while it runs.
  std::optional<IdleEnd> end() {
    int status = 0;
    const pid_t ended = waitpid(child_, &status, WNOHANG);
    if (ended == 0 || (ended < 0 && errno == EINTR)) return std::nullopt;
    is_running_ = false;
    if (ended != child_) return IdleEnd::kFailed;  // how it ended is not known: SIGCHLD is ignored
    return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? IdleEnd::kDone : IdleEnd::kFailed;
  }

 private:
  // To its whole group.
  void signal(int number) const { kill(-child_, number); }

  pid_t child_;
  bool is_running_ = true;
};

enum class Quiet { kIdle, kStopped, kLate };

// Waits until nothing was asked for a while; until `limit` at most.
Quiet wait_for_quiet(const IdleWork& work, IdleClock::time_point limit) {
  for (auto since = IdleClock::now(); IdleClock::now() - since < kQuietBefore;) {
    if (work.stopped()) return Quiet::kStopped;
    if (IdleClock::now() >= limit) return Quiet::kLate;
    if (!work.is_idle()) since = IdleClock::now();
    std::this_thread::sleep_for(kLookHalted);
  }
  return Quiet::kIdle;
}

}  // namespace

Result<IdleEnd> run_while_idle(const IdleWork& work) {
  if (wait_for_quiet(work, IdleClock::time_point::max()) != Quiet::kIdle) return IdleEnd::kStopped;
  if (work.may_start) RETURN_IF_ERROR(work.may_start());
  ASSIGN_OR_RETURN(const pid_t pid,
                   spawn_program(work.words, {.is_silent = true, .has_group = true}));
  IdleChild child(pid);
  auto since = IdleClock::now();  // when it last went on
  const auto limit = since + work.wall_max;
  IdleClock::duration worked{0};
  while (!work.stopped()) {
    if (const std::optional<IdleEnd> end = child.end()) return *end;
    if (!work.is_idle()) {
      child.halt();
      worked += IdleClock::now() - since;
      const Quiet quiet = wait_for_quiet(work, limit);
      if (quiet == Quiet::kStopped) return IdleEnd::kStopped;
      if (quiet == Quiet::kLate) return IdleEnd::kTooBusy;
      since = IdleClock::now();
      child.go_on();
    }
    const auto now = IdleClock::now();
    if (worked + (now - since) >= work.work_max) return IdleEnd::kTooLong;
    if (now >= limit) return IdleEnd::kTooBusy;
    std::this_thread::sleep_for(kLookRunning);
  }
  return IdleEnd::kStopped;
}

}  // namespace pagoda::process
