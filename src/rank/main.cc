// pagoda-rank: one of the processes that compute a model together. `pagoda --tensor-parallel-size`
// starts them by mpirun; nobody else does.
#include <fmt/format.h>

#include <csignal>
#include <cstdint>
#include <cstdio>
#include <span>
#include <string>

#include "app/rank_program.h"
#include "base/result.h"
#include "ranks/channel.h"
#include "ranks/mpi_communicator.h"

namespace {

using pagoda::Result;
using pagoda::Status;
namespace ranks = pagoda::ranks;

// The serving program sees the silence of a rank before others give up waiting for it.
constexpr std::chrono::seconds kLater{5};

Status run(ranks::MpiCommunicator& communicator, const ranks::Channel& channel) {
  const std::uint32_t rank = communicator.rank();
  RETURN_IF_ERROR(channel.send(ranks::MessageKind::kHello, std::as_bytes(std::span(&rank, 1))));
  return pagoda::app::run_rank(communicator, channel, [&](std::chrono::milliseconds limit) {
    communicator.set_limit(limit + kLater, [&channel] {
      static_cast<void>(channel.send(ranks::MessageKind::kAlive, std::span<const std::byte>()));
    });
  });
}

}  // namespace

int main(int count, char** words) {
  if (count != 2) {
    fmt::print(stderr, "pagoda-rank is a part of pagoda, which starts it\n");
    return 2;
  }
  std::signal(SIGINT, SIG_IGN);  // the serving program lets its requests end
  ranks::MpiCommunicator communicator;
  const Result<ranks::Channel> channel = ranks::Channel::connect(words[1]);
  if (!channel.ok()) {
    fmt::print(stderr, "pagoda-rank: {}\n", channel.error().message);
    return 1;
  }
  const Status outcome = run(communicator, channel.value());
  if (outcome.ok()) return 0;
  // Where the serving program is gone, nobody is told.
  const std::string& why = outcome.error().message;
  static_cast<void>(channel.value().send(ranks::MessageKind::kFailure, why));
  return 1;
}
