#include "bench/server_process.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <netinet/in.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <thread>

#include "loadgen/run_load.h"

namespace pagoda::bench {
namespace {

constexpr std::chrono::seconds kStartMax{300};
constexpr std::chrono::seconds kEndMax{20};
constexpr std::chrono::milliseconds kLook{100};

int spawn_silent(pid_t& child, const std::vector<std::string>& words) {
  std::vector<char*> arguments;
  for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
  posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
  const int error =
      posix_spawnp(&child, words.front().c_str(), &actions, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  return error;
}

bool is_serving(const loadgen::Target& target) {
  const auto reply = loadgen::fetch(target, loadgen::get_request(target, "/health"), 5);
  return reply.ok() && reply.value().status == 200;
}

bool has_ended(pid_t child) {
  int status = 0;
  return waitpid(child, &status, WNOHANG) != 0;
}

}  // namespace

Result<std::uint16_t> free_port() {
  const int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  const bool is_bound = listener >= 0 &&
                        bind(listener, reinterpret_cast<sockaddr*>(&address), size) == 0 &&
                        getsockname(listener, reinterpret_cast<sockaddr*>(&address), &size) == 0;
  const int error = errno;
  if (listener >= 0) close(listener);
  if (is_bound) return ntohs(address.sin_port);
  return Error{ErrorCode::kIo, fmt::format("no port of 127.0.0.1 is free: {}", strerror(error))};
}

std::string command_text(const std::vector<std::string>& words) {
  return fmt::format("{}", fmt::join(words, " "));
}

Result<std::unique_ptr<ServerProcess>> ServerProcess::start(const std::vector<std::string>& words,
                                                            std::uint16_t port,
                                                            const std::function<bool()>& stopped) {
  ASSIGN_OR_RETURN(loadgen::Target target,
                   loadgen::parse_target(fmt::format("http://127.0.0.1:{}", port), "URL"));
  pid_t child = 0;
  if (const int error = spawn_silent(child, words); error != 0) {
    return Error{ErrorCode::kIo, fmt::format("cannot run {}: {}", words.front(), strerror(error))};
  }
  std::unique_ptr<ServerProcess> server(new ServerProcess(child, std::move(target)));
  const auto until = std::chrono::steady_clock::now() + kStartMax;
  while (!is_serving(server->target())) {
    if (has_ended(child)) {
      server->child_ = 0;
      return Error{ErrorCode::kIo, fmt::format("ended at once: {}", command_text(words))};
    }
    if (stopped() || std::chrono::steady_clock::now() > until) {
      return Error{ErrorCode::kIo, fmt::format("does not serve: {}", command_text(words))};
    }
    std::this_thread::sleep_for(kLook);
  }
  return server;
}

ServerProcess::~ServerProcess() {
  if (child_ == 0) return;
  kill(child_, SIGTERM);
  const auto until = std::chrono::steady_clock::now() + kEndMax;
  while (!has_ended(child_)) {
    if (std::chrono::steady_clock::now() > until) kill(child_, SIGKILL);
    std::this_thread::sleep_for(kLook);
  }
}

}  // namespace pagoda::bench
