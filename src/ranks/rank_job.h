// RankJob starts the ranks of a model as one MPI job on this machine, and ends them.
//
// MPI ends a whole job when one of its processes dies, so the serving program is no part of it: the
// job is `mpirun -n N pagoda-rank SOCKET`, and every rank connects to a Unix socket in a folder
// that only this user may enter. When this program ends, by whatever signal, so does the job.
//
// Thread rule: the thread that starts a job must outlive it (process/spawned_program.h).
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "ranks/channel.h"

namespace pagoda::ranks {

struct RankJobOptions {
  std::uint32_t ranks = 2;
  std::chrono::milliseconds start_limit{60'000};  // until every rank has connected
  std::string program = {};  // of a rank; empty: pagoda-rank beside this program
};

class RankJob {
 public:
  // kUnsupported: there is no mpirun or no program for ranks.
  static Result<std::unique_ptr<RankJob>> start(const RankJobOptions& options);
  ~RankJob();
  RankJob(const RankJob&) = delete;
  RankJob& operator=(const RankJob&) = delete;

  // Returns the channels of all ranks, in order; once.
  std::vector<Channel> take_channels() { return std::move(channels_); }
  // Asks for the end of all ranks. Any thread.
  void end() const;

 private:
  RankJob() = default;
  Status listen();
  Status accept_ranks(const RankJobOptions& options);
  bool has_ended();

  std::string folder_;
  int listener_ = -1;
  pid_t mpirun_ = -1;
  bool is_running_ = false;
  std::vector<Channel> channels_;
};

}  // namespace pagoda::ranks
