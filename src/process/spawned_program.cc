#include "process/spawned_program.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <pthread.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>

namespace pagoda::process {
namespace {

constexpr int kNotStarted = 127;  // as shells have it
constexpr int kEndedBySignal = 128;
constexpr int kFirstOther = STDERR_FILENO + 1;  // the first file that is no standard stream
constexpr unsigned kCloseOnExec = 4;            // CLOSE_RANGE_CLOEXEC, of Linux 5.11

// The child reads the plan from its parent's memory (vfork) until it becomes the program.
struct ChildPlan {
  char* const* words;
  const SpawnOptions& options;
  pid_t parent;
  sigset_t signals;  // blocked before
  int failure;       // a pipe: takes errno where the program cannot be run
};

void close_others_on_exec() {
#ifdef SYS_close_range
  if (syscall(SYS_close_range, kFirstOther, ~0u, kCloseOnExec) == 0) return;
#endif
  constexpr rlim_t kFilesMax = 1 << 16;
  rlimit limit = {};
  getrlimit(RLIMIT_NOFILE, &limit);
  const int end = static_cast<int>(std::min(limit.rlim_cur, kFilesMax));
  for (int file = kFirstOther; file < end; ++file) fcntl(file, F_SETFD, FD_CLOEXEC);
}

// A handler of the parent's would run in the parent's memory.
void reset_signals() {
  struct sigaction standard = {};
  standard.sa_handler = SIG_DFL;
  for (int number = 1; number < NSIG; ++number) {
    struct sigaction now = {};
    const bool is_kept = sigaction(number, nullptr, &now) != 0 || now.sa_handler == SIG_IGN;
    if (!is_kept || number == SIGINT) sigaction(number, &standard, nullptr);
  }
}

void leave_streams() {
  const int nothing = open("/dev/null", O_RDWR);
  for (int stream = 0; stream < kFirstOther; ++stream) dup2(nothing, stream);
}

// Runs in the child, which has its parent's memory until it is the program: it calls nothing but
// the system.
[[noreturn]] void become_program(const ChildPlan& plan) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != plan.parent) _exit(kNotStarted);  // it ended before the call above
  if (plan.options.has_group) setpgid(0, 0);
  if (plan.options.is_silent) leave_streams();
  close_others_on_exec();
  reset_signals();
  pthread_sigmask(SIG_SETMASK, &plan.signals, nullptr);
  execve(plan.words[0], plan.words, environ);
  const int error = errno;
  [[maybe_unused]] const ssize_t written = write(plan.failure, &error, sizeof error);
  _exit(kNotStarted);
}

// A fork would copy the page tables of a whole model and its cache.
[[gnu::noinline]] pid_t start_child(const ChildPlan& plan) {
  const pid_t child = vfork();  // NOLINT
  if (child == 0) become_program(plan);
  return child;
}

// Returns the errno of a program that could not be run, 0 of one that runs.
int read_failure(int pipe_end) {
  int error = 0;
  ssize_t bytes = 0;
  do {
    bytes = read(pipe_end, &error, sizeof error);
  } while (bytes < 0 && errno == EINTR);
  return bytes == sizeof error ? error : 0;
}

}  // namespace

Result<pid_t> spawn_program(const std::vector<std::string>& words, const SpawnOptions& options) {
  const auto failed = [&](int error) {
    return Error{ErrorCode::kIo,
                 fmt::format("cannot run {}: {}", words.front(), std::strerror(error))};
  };
  std::vector<char*> arguments;
  arguments.reserve(words.size() + 1);
  for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  std::array<int, 2> ends = {};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) return failed(errno);
  ChildPlan plan = {.words = arguments.data(),
                    .options = options,
                    .parent = getpid(),
                    .signals = {},
                    .failure = ends[1]};
  sigset_t all;
  sigfillset(&all);
  pthread_sigmask(SIG_BLOCK, &all, &plan.signals);
  const pid_t child = start_child(plan);
  int error = child < 0 ? errno : 0;
  pthread_sigmask(SIG_SETMASK, &plan.signals, nullptr);
  close(ends[1]);
  if (child >= 0) error = read_failure(ends[0]);
  close(ends[0]);
  if (error == 0) return child;
  if (child > 0) wait_for_program(child);
  return failed(error);
}

std::optional<int> wait_for_program(pid_t program) {
  int status = 0;
  pid_t ended = 0;
  do {
    ended = waitpid(program, &status, 0);
  } while (ended < 0 && errno == EINTR);
  if (ended != program) return std::nullopt;
  return WIFEXITED(status) ? WEXITSTATUS(status) : kEndedBySignal + WTERMSIG(status);
}

}  // namespace pagoda::process
