#include "cli/child_process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <string_view>
#include <system_error>

namespace pagoda::cli {
namespace {

constexpr std::size_t kOutputBytesMax = 4096;
constexpr int kKilledBy = 128;

// While a child runs, Ctrl-C is for the child.
class InterruptIgnored {
 public:
  InterruptIgnored() {
    struct sigaction ignore = {};
    ignore.sa_handler = SIG_IGN;
    sigaction(SIGINT, &ignore, &before_);
  }
  ~InterruptIgnored() { sigaction(SIGINT, &before_, nullptr); }
  InterruptIgnored(const InterruptIgnored&) = delete;
  InterruptIgnored& operator=(const InterruptIgnored&) = delete;

 private:
  struct sigaction before_ = {};
};

class SpawnTerms {
 public:
  // `output`: what becomes the child's stdout; -1: this process's.
  explicit SpawnTerms(int output) {
    posix_spawnattr_init(&attributes_);
    sigset_t interrupt;
    sigemptyset(&interrupt);
    sigaddset(&interrupt, SIGINT);
    posix_spawnattr_setsigdefault(&attributes_, &interrupt);
    posix_spawnattr_setflags(&attributes_, POSIX_SPAWN_SETSIGDEF);
    posix_spawn_file_actions_init(&actions_);
    if (output >= 0) posix_spawn_file_actions_adddup2(&actions_, output, STDOUT_FILENO);
  }
  ~SpawnTerms() {
    posix_spawn_file_actions_destroy(&actions_);
    posix_spawnattr_destroy(&attributes_);
  }
  SpawnTerms(const SpawnTerms&) = delete;
  SpawnTerms& operator=(const SpawnTerms&) = delete;

  int spawn(pid_t& child, const std::vector<std::string>& arguments) const {
    std::vector<char*> words;
    for (const std::string& argument : arguments)
      words.push_back(const_cast<char*>(argument.c_str()));
    words.push_back(nullptr);
    return posix_spawn(&child, words.front(), &actions_, &attributes_, words.data(), environ);
  }

 private:
  posix_spawnattr_t attributes_;
  posix_spawn_file_actions_t actions_;
};

std::string read_output(int descriptor) {
  std::string output;
  std::array<char, 512> bytes;
  for (;;) {
    const ssize_t count = read(descriptor, bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return output;
    const std::size_t room = kOutputBytesMax - std::min(output.size(), kOutputBytesMax);
    output.append(bytes.data(), std::min(static_cast<std::size_t>(count), room));
  }
}

int wait_for(pid_t child) {
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) continue;
  return WIFEXITED(status) ? WEXITSTATUS(status) : kKilledBy + WTERMSIG(status);
}

}  // namespace

std::optional<std::string> find_program(const std::string& name, const std::string& path) {
  std::string_view rest = path;
  while (!rest.empty()) {
    const std::size_t end = std::min(rest.find(':'), rest.size());
    const std::filesystem::path program = std::filesystem::path(rest.substr(0, end)) / name;
    rest.remove_prefix(std::min(end + 1, rest.size()));
    std::error_code ignored;
    if (end > 0 && std::filesystem::is_regular_file(program, ignored) &&
        access(program.c_str(), X_OK) == 0) {
      return program.string();
    }
  }
  return std::nullopt;
}

Result<ChildOutcome> run_child(const std::vector<std::string>& arguments, bool keeps_output) {
  std::array<int, 2> ends = {-1, -1};
  if (keeps_output && pipe2(ends.data(), O_CLOEXEC) != 0) {
    return Error{ErrorCode::kIo, fmt::format("cannot make a pipe: {}", std::strerror(errno))};
  }
  const InterruptIgnored ignored;
  pid_t child = 0;
  const int error = SpawnTerms(ends[1]).spawn(child, arguments);
  if (keeps_output) close(ends[1]);
  ChildOutcome outcome;
  if (error == 0) {
    if (keeps_output) outcome.output = read_output(ends[0]);
    outcome.exit_status = wait_for(child);
  }
  if (keeps_output) close(ends[0]);
  if (error != 0) {
    return Error{ErrorCode::kIo,
                 fmt::format("{}: cannot be run: {}", arguments.front(), std::strerror(error))};
  }
  return outcome;
}

}  // namespace pagoda::cli
