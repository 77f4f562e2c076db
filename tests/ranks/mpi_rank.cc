// A rank of tests: as pagoda-rank, but for a small model that its setup names by file and kernels.
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstring>
#include <span>
#include <string>

#include "base/thread_pool.h"
#include "engine/backends/rank_worker.h"
#include "kernels/select.h"
#include "kv/memory/page_buffer.h"
#include "model/test_model.h"
#include "ranks/mpi_communicator.h"

namespace pagoda {
namespace {

using ranks::MessageKind;

Status work(ranks::MpiCommunicator& communicator, const ranks::Channel& channel) {
  const std::uint32_t rank = communicator.rank();
  RETURN_IF_ERROR(channel.send(MessageKind::kHello, std::as_bytes(std::span(&rank, 1))));
  ASSIGN_OR_RETURN(const ranks::Bytes text, channel.receive(MessageKind::kSetup));
  const model::TestModel model(
      model::test_model_path({reinterpret_cast<const char*>(text.data()), text.size()}));
  communicator.set_limit(std::chrono::seconds(30), [&channel] {
    static_cast<void>(channel.send(MessageKind::kAlive, std::span<const std::byte>()));
  });
  ThreadPool pool(1);
  model::Decoder decoder(model.config(), model.weights(), *kernels::available_sets().back(), pool,
                         {.rows_max = 64, .block_tokens = 16, .communicator = &communicator});
  const std::uint64_t said[] = {decoder.page_layout().page_bytes(),
                                static_cast<std::uint64_t>(getpid())};
  RETURN_IF_ERROR(channel.send(MessageKind::kReady, std::as_bytes(std::span(said))));
  ASSIGN_OR_RETURN(const ranks::Bytes asked, channel.receive(MessageKind::kPages));
  std::uint32_t count = 0;
  std::memcpy(&count, asked.data(), sizeof count);
  ASSIGN_OR_RETURN(const kv::memory::PageBuffer pages,
                   kv::memory::PageBuffer::allocate(decoder.page_layout(), count));
  RETURN_IF_ERROR(channel.send(MessageKind::kReady, std::span<const std::byte>()));
  return engine::RankWorker(decoder, pages, communicator, channel).run();
}

}  // namespace
}  // namespace pagoda

int main(int count, char** words) {
  if (count < 2) return 2;
  pagoda::ranks::MpiCommunicator communicator;
  const auto channel = pagoda::ranks::Channel::connect(words[1]);
  if (!channel.ok()) return 1;
  const pagoda::Status outcome = pagoda::work(communicator, channel.value());
  if (outcome.ok()) return 0;
  static_cast<void>(
      channel.value().send(pagoda::ranks::MessageKind::kFailure, outcome.error().message));
  return 1;
}
