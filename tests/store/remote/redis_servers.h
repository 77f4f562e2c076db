// RedisServers are the redis-servers of tools/redis_servers.py: a cluster, or a server with a
// sentinel; on loopback, gone with the test.
#pragma once

#include <sys/types.h>

#include <cstdio>
#include <string>
#include <vector>

namespace pagoda::store {

class RedisServers {
 public:
  // Waits until they work together. `words`: arguments of the script.
  explicit RedisServers(std::vector<std::string> words);
  ~RedisServers();
  RedisServers(const RedisServers&) = delete;
  RedisServers& operator=(const RedisServers&) = delete;

  std::size_t size() const { return ports_.size(); }
  int port(std::size_t node) const { return ports_.at(node); }
  pid_t process(std::size_t node) const { return processes_.at(node); }
  std::string host_and_port(std::size_t node) const;
  // Has the script obey a command; returns its line of JSON.
  std::string ask(const std::string& command);

 private:
  std::string line();

  pid_t script_ = -1;
  FILE* to_ = nullptr;
  FILE* from_ = nullptr;
  std::vector<int> ports_;
  std::vector<pid_t> processes_;
};

}  // namespace pagoda::store
