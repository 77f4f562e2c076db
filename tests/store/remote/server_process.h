// ServerProcess is a redis-server or memcached of the test's own: on loopback, on a free port, gone
// with the test.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

namespace pagoda::store {

class ServerProcess {
 public:
  static bool has_redis();
  static bool has_memcached();
  // Waits until the server answers. `more`: further arguments; "PORT" in them stands for the port.
  static ServerProcess redis(std::vector<std::string> more = {}, int port = 0);
  static ServerProcess memcached(std::vector<std::string> more = {}, int port = 0);

  ServerProcess(ServerProcess&& other) noexcept;
  ServerProcess& operator=(ServerProcess&&) = delete;
  ~ServerProcess();

  int port() const { return port_; }
  std::string host_and_port() const { return "127.0.0.1:" + std::to_string(port_); }
  void pause();   // SIGSTOP, and waits until all its threads stand still
  void resume();  // SIGCONT
  void kill();    // waits until the process is gone

 private:
  ServerProcess(const std::vector<std::string>& words, int port);  // port 0: any
  bool start(std::vector<std::string> words, int port);

  int port_ = 0;
  pid_t process_ = -1;
};

// Returns a port that was free a moment ago.
int free_port();

}  // namespace pagoda::store

// Without the server a test is skipped by name; under CI=true it fails.
#define REQUIRE_SERVER(is_there, name)                                         \
  do {                                                                         \
    if (is_there) break;                                                       \
    const char* const ci = std::getenv("CI");                                  \
    if (ci != nullptr && std::string(ci) == "true") FAIL() << "no " << (name); \
    GTEST_SKIP() << (name) << " is not installed";                             \
  } while (false)
