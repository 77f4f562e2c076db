#include "ranks/rank_job.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <optional>
#include <system_error>
#include <thread>

#include "process/child_process.h"
#include "process/spawned_program.h"
#include "ranks/communicator.h"

namespace pagoda::ranks {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds kLook{20};
constexpr std::chrono::seconds kEndLimit{5};

Error errno_error(const std::string& what) {
  return {ErrorCode::kIo, fmt::format("{}: {}", what, std::strerror(errno))};
}

Result<std::string> program_of_ranks(const RankJobOptions& options) {
  if (!options.program.empty()) return options.program;
  std::error_code unreadable;
  const auto self = std::filesystem::read_symlink("/proc/self/exe", unreadable);
  const std::string path = (self.parent_path() / "pagoda-rank").string();
  if (!unreadable && access(path.c_str(), X_OK) == 0) return path;
  return Error{ErrorCode::kUnsupported,
               fmt::format("`tensor_parallel_size` {}: {} is not there: this program was built "
                           "without MPI. With libopenmpi-dev installed, build again",
                           options.ranks, path)};
}

// One machine, any user, more ranks than cores; threads go where the system puts them. Ranks meet
// in shared memory, and nothing listens on a network.
std::vector<std::string> mpirun_words(const std::string& mpirun, const RankJobOptions& options,
                                      const std::string& folder, const std::string& program) {
  std::vector<std::string> words = {
      mpirun,  "-allow-run-as-root", "-oversubscribe", "-bind-to", "none", "-stdin", "none",
      "-quiet"};
  const auto set = [&](const char* name, const std::string& value) {
    words.insert(words.end(), {"-mca", name, value});
  };
  set("plm", "isolated");
  set("pml", "ob1");
  set("btl", "self,vader");
  set("btl_vader_single_copy_mechanism", "none");
  set("oob_tcp_if_include", "lo");
  set("orte_tmpdir_base", folder);
  words.insert(words.end(), {"-n", std::to_string(options.ranks), program, folder + "/s"});
  return words;
}

}  // namespace

Result<std::unique_ptr<RankJob>> RankJob::start(const RankJobOptions& options) {
  ASSIGN_OR_RETURN(const std::string program, program_of_ranks(options));
  const char* const path = std::getenv("PATH");
  const std::optional<std::string> mpirun =
      process::find_program("mpirun", path == nullptr ? "/usr/bin:/bin" : path);
  if (!mpirun) {
    return Error{
        ErrorCode::kUnsupported,
        fmt::format("`tensor_parallel_size` {}: mpirun is not on PATH; Debian's package is "
                    "openmpi-bin",
                    options.ranks)};
  }
  std::unique_ptr<RankJob> job(new RankJob());
  RETURN_IF_ERROR(job->listen());
  ASSIGN_OR_RETURN(job->mpirun_,
                   process::spawn_program(mpirun_words(*mpirun, options, job->folder_, program),
                                          {.has_group = true}));
  job->is_running_ = true;
  RETURN_IF_ERROR(job->accept_ranks(options));
  return job;
}

Status RankJob::listen() {
  std::string name = (std::filesystem::temp_directory_path() / "pagoda-XXXXXX").string();
  if (mkdtemp(name.data()) == nullptr) return errno_error(name);
  folder_ = name;
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  const std::string path = folder_ + "/s";
  if (path.size() >= sizeof address.sun_path) {
    return Error{ErrorCode::kInvalidArgument, fmt::format("{}: is too long for a socket", path)};
  }
  std::memcpy(address.sun_path, path.data(), path.size());
  listener_ = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const auto* const where = reinterpret_cast<const sockaddr*>(&address);
  if (listener_ < 0 || bind(listener_, where, sizeof address) < 0 ||
      ::listen(listener_, kRanksMax) < 0) {
    return errno_error(path);
  }
  return ok_status();
}

// Ranks connect in any order; each says first which it is.
Status RankJob::accept_ranks(const RankJobOptions& options) {
  const auto late = Clock::now() + options.start_limit;
  std::vector<std::optional<Channel>> came(options.ranks);
  for (std::uint32_t count = 0; count < options.ranks;) {
    pollfd waiting = {.fd = listener_, .events = POLLIN, .revents = 0};
    if (poll(&waiting, 1, static_cast<int>(kLook.count())) <= 0) {
      if (has_ended()) return Error{ErrorCode::kIo, "mpirun ended before its ranks had begun"};
      if (Clock::now() < late) continue;
      return Error{ErrorCode::kIo, fmt::format("{} of {} ranks began within {} s", count,
                                               options.ranks, options.start_limit.count() / 1000)};
    }
    Channel channel(accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC));
    if (channel.socket() < 0) continue;
    channel.set_limit_ms(options.start_limit.count());
    ASSIGN_OR_RETURN(const Bytes hello, channel.receive(MessageKind::kHello));
    std::uint32_t rank = 0;
    if (hello.size() == sizeof rank) std::memcpy(&rank, hello.data(), sizeof rank);
    if (hello.size() != sizeof rank || rank >= options.ranks || came[rank]) {
      return Error{ErrorCode::kCorrupt, "a rank says that it is one which cannot be"};
    }
    came[rank].emplace(std::move(channel));
    ++count;
  }
  for (std::optional<Channel>& channel : came) channels_.push_back(std::move(*channel));
  return ok_status();
}

bool RankJob::has_ended() {
  if (!is_running_) return true;
  int status = 0;
  const pid_t ended = waitpid(mpirun_, &status, WNOHANG);
  if (ended == mpirun_ || (ended < 0 && errno != EINTR)) is_running_ = false;
  return !is_running_;
}

void RankJob::end() const {
  if (is_running_) kill(mpirun_, SIGTERM);
}

// Ranks whose channel is closed end by themselves, and mpirun with them; one that does not is
// killed.
RankJob::~RankJob() {
  channels_.clear();
  const auto late = Clock::now() + kEndLimit;
  const auto later = late + kEndLimit;
  bool was_asked = false;
  while (!has_ended()) {
    if (Clock::now() >= late && !was_asked) {
      end();
      was_asked = true;
    }
    if (Clock::now() >= later) {
      kill(-mpirun_, SIGKILL);
      process::wait_for_program(mpirun_);
      is_running_ = false;
    }
    std::this_thread::sleep_for(kLook);
  }
  if (listener_ >= 0) close(listener_);
  std::error_code ignored;
  if (!folder_.empty()) std::filesystem::remove_all(folder_, ignored);
}

}  // namespace pagoda::ranks
