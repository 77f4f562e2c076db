// A server that this program starts for a benchmark, and ends again.
#pragma once

#include <sys/types.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "loadgen/target.h"

namespace pagoda::bench {

class ServerProcess {
 public:
  // Starts words[0] with its output thrown away, and waits until /health says that it serves. An
  // error names the command. `stopped` is asked now and then.
  static Result<std::unique_ptr<ServerProcess>> start(const std::vector<std::string>& words,
                                                      std::uint16_t port,
                                                      const std::function<bool()>& stopped);
  // Ends the program and waits for its end.
  ~ServerProcess();
  ServerProcess(const ServerProcess&) = delete;
  ServerProcess& operator=(const ServerProcess&) = delete;

  const loadgen::Target& target() const { return target_; }

 private:
  ServerProcess(pid_t child, loadgen::Target target) : child_(child), target_(std::move(target)) {}

  pid_t child_;
  loadgen::Target target_;
};

// A port of this machine that nobody listens at now.
Result<std::uint16_t> free_port();

// The words of a command as one line, for reports.
std::string command_text(const std::vector<std::string>& words);

}  // namespace pagoda::bench
