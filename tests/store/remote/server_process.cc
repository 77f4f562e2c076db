#include "store/remote/server_process.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <sstream>
#include <thread>
#include <utility>

#include "base/assert.h"

namespace pagoda::store {
namespace {

bool is_on_path(const std::string& program) {
  const char* const path = std::getenv("PATH");
  std::istringstream folders(path == nullptr ? "" : path);
  for (std::string folder; std::getline(folders, folder, ':');) {
    if (access((folder + "/" + program).c_str(), X_OK) == 0) return true;
  }
  return false;
}

sockaddr_in loopback(int port) {
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

bool listens(int port) {
  const int client = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const sockaddr_in address = loopback(port);
  const bool connected =
      connect(client, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
  close(client);
  return connected;
}

[[noreturn]] void become(const std::vector<std::string>& words) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  const int nothing = open("/dev/null", O_RDWR);
  dup2(nothing, 0);
  dup2(nothing, 1);
  dup2(nothing, 2);
  std::vector<char*> arguments;
  for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  execvp(arguments[0], arguments.data());
  _exit(127);
}

}  // namespace

int free_port() {
  const int server = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address = loopback(0);
  socklen_t bytes = sizeof address;
  ASSERT(bind(server, reinterpret_cast<sockaddr*>(&address), bytes) == 0, "loopback has a port");
  getsockname(server, reinterpret_cast<sockaddr*>(&address), &bytes);
  close(server);
  return ntohs(address.sin_port);
}

bool ServerProcess::has_redis() { return is_on_path("redis-server"); }
bool ServerProcess::has_memcached() { return is_on_path("memcached"); }

ServerProcess ServerProcess::redis(std::vector<std::string> more, int port) {
  std::vector<std::string> words = {"redis-server",
                                    "--port",
                                    "PORT",
                                    "--bind",
                                    "127.0.0.1",
                                    "--save",
                                    "",
                                    "--appendonly",
                                    "no",
                                    "--dir",
                                    std::filesystem::temp_directory_path()};
  words.insert(words.end(), more.begin(), more.end());
  return {words, port};
}

ServerProcess ServerProcess::memcached(std::vector<std::string> more, int port) {
  std::vector<std::string> words = {"memcached", "-p", "PORT", "-l",    "127.0.0.1",
                                    "-U",        "0",  "-u",   "nobody"};
  words.insert(words.end(), more.begin(), more.end());
  return {words, port};
}

// A port that was free may be another's before the server has it: then the server ends.
ServerProcess::ServerProcess(const std::vector<std::string>& words, int port) {
  constexpr int kTries = 5;
  for (int i = 0; i < kTries && !start(words, port == 0 ? free_port() : port); ++i) kill();
}

// Returns whether the server listens.
bool ServerProcess::start(std::vector<std::string> words, int port) {
  port_ = port;
  for (std::string& word : words) {
    if (word == "PORT") word = std::to_string(port);
  }
  process_ = fork();
  if (process_ == 0) become(words);
  for (int i = 0; i < 500 && !listens(port_); ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    if (waitpid(process_, nullptr, WNOHANG) != 0) {
      process_ = -1;
      return false;
    }
  }
  // Whoever listens may be another.
  std::this_thread::sleep_for(std::chrono::milliseconds(10));
  if (waitpid(process_, nullptr, WNOHANG) == 0) return true;
  process_ = -1;
  return false;
}

ServerProcess::ServerProcess(ServerProcess&& other) noexcept
    : port_(other.port_), process_(std::exchange(other.process_, -1)) {}

ServerProcess::~ServerProcess() { kill(); }

void ServerProcess::pause() {
  ::kill(process_, SIGSTOP);
  waitpid(process_, nullptr, WUNTRACED);
}
void ServerProcess::resume() { ::kill(process_, SIGCONT); }

void ServerProcess::kill() {
  if (process_ < 0) return;
  ::kill(process_, SIGKILL);
  waitpid(std::exchange(process_, -1), nullptr, 0);
}

}  // namespace pagoda::store
