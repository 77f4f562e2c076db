#include "process/program_output.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

namespace pagoda::process {
namespace {

constexpr int kStopPollMs = 50;

// Carries the text that a child writes into one of its streams.
class Pipe {
 public:
  Pipe() {
    if (pipe2(ends_.data(), O_CLOEXEC) != 0) ends_ = {-1, -1};
  }
  ~Pipe() {
    close_write();
    if (ends_[0] >= 0) close(ends_[0]);
  }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;

  bool is_open() const { return ends_[0] >= 0; }
  int read_end() const { return ends_[0]; }
  int write_end() const { return ends_[1]; }
  void close_write() {
    if (ends_[1] >= 0) close(ends_[1]);
    ends_[1] = -1;
  }

  // Adds what is there now; false at the end.
  bool read_into(std::string& text) const {
    std::array<char, 1 << 14> buffer;
    const ssize_t count = read(ends_[0], buffer.data(), buffer.size());
    if (count > 0) text.append(buffer.data(), static_cast<std::size_t>(count));
    return count > 0 || (count < 0 && errno == EINTR);
  }

 private:
  std::array<int, 2> ends_{};
};

Result<pid_t> spawn(const std::vector<std::string>& words, const Pipe& out, const Pipe& err) {
  std::vector<char*> argv;
  argv.reserve(words.size() + 1);
  for (const std::string& word : words) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, out.write_end(), STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, err.write_end(), STDERR_FILENO);
  pid_t child = 0;
  const int problem = posix_spawn(&child, argv[0], &actions, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (problem != 0) {
    return Error{ErrorCode::kIo, fmt::format("cannot run {}: {}", words[0], strerror(problem))};
  }
  return child;
}

// Until both streams have ended. False when it was stopped before.
bool read_both(const Pipe& out, const Pipe& err, ProgramOutput& output,
               const std::function<bool()>& stopped) {
  std::array<pollfd, 2> streams = {{{out.read_end(), POLLIN, 0}, {err.read_end(), POLLIN, 0}}};
  while (streams[0].fd >= 0 || streams[1].fd >= 0) {
    if (stopped()) return false;
    if (poll(streams.data(), streams.size(), kStopPollMs) <= 0) continue;
    if (streams[0].revents != 0 && !out.read_into(output.out)) streams[0].fd = -1;
    if (streams[1].revents != 0 && !err.read_into(output.err)) streams[1].fd = -1;
  }
  return true;
}

std::string last_line(const std::string& text) {
  const std::size_t end = text.find_last_not_of(" \t\r\n");
  if (end == std::string::npos) return {};
  const std::size_t newline = text.find_last_of('\n', end);
  const std::size_t begin = newline == std::string::npos ? 0 : newline + 1;
  return text.substr(begin, end + 1 - begin);
}

}  // namespace

std::string ProgramOutput::end() const {
  if (signal != 0) return fmt::format("ended by signal {} ({})", signal, strsignal(signal));
  const std::string said = last_line(err);
  return fmt::format("ended with status {}{}{}", exit_status, said.empty() ? "" : ": ", said);
}

Result<ProgramOutput> run_program(const std::vector<std::string>& words,
                                  const std::function<bool()>& stopped) {
  Pipe out;
  Pipe err;
  if (!out.is_open() || !err.is_open()) {
    return Error{ErrorCode::kIo,
                 fmt::format("cannot run {}: no pipe: {}", words[0], strerror(errno))};
  }
  ASSIGN_OR_RETURN(const pid_t child, spawn(words, out, err));
  out.close_write();
  err.close_write();
  ProgramOutput output;
  const bool ended = read_both(out, err, output, stopped);
  if (!ended) kill(child, SIGKILL);
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (!ended) return Error{ErrorCode::kExhausted, fmt::format("{} was stopped", words[0])};
  if (WIFSIGNALED(status)) output.signal = WTERMSIG(status);
  if (WIFEXITED(status)) output.exit_status = WEXITSTATUS(status);
  return output;
}

}  // namespace pagoda::process
