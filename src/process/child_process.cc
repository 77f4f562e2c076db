#include "process/child_process.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <string_view>
#include <system_error>

#include "process/spawned_program.h"

namespace pagoda::process {
namespace {

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

Result<int> run_child(const std::vector<std::string>& arguments) {
  const InterruptIgnored ignored;
  ASSIGN_OR_RETURN(const pid_t child, spawn_program(arguments, {}));
  if (const std::optional<int> status = wait_for_program(child)) return *status;
  return Error{ErrorCode::kIo, fmt::format("how {} ended is not known", arguments.front())};
}

}  // namespace pagoda::process
