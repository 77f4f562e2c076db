#include "ranks/thread_workers.h"

#include <sys/socket.h>

#include <array>
#include <cstring>
#include <span>
#include <utility>

#include "base/assert.h"
#include "engine/backends/rank_worker.h"
#include "kv/memory/page_buffer.h"
#include "model/division.h"
#include "model/kv_groups.h"

namespace pagoda::engine {
namespace {

using ranks::MessageKind;

// Fails at a gather, as a process does that is killed there.
class LeavingCommunicator final : public ranks::Communicator {
 public:
  LeavingCommunicator(ranks::Communicator& inner, std::uint64_t gathers)
      : inner_(inner), gathers_left_(gathers) {}

  std::uint32_t rank() const override { return inner_.rank(); }
  std::uint32_t ranks() const override { return inner_.ranks(); }
  void gather(std::byte* data, std::span<const std::size_t> offsets) override {
    if (goes_on()) inner_.gather(data, offsets);
  }
  void gather_to_first(std::byte* data, std::span<const std::size_t> offsets) override {
    if (goes_on()) inner_.gather_to_first(data, offsets);
  }
  const std::optional<Error>& failure() const override {
    return failure_ ? failure_ : inner_.failure();
  }

 private:
  bool goes_on() {
    if (gathers_left_-- > 1) return true;
    failure_ = Error{ErrorCode::kIo, "its memory is broken"};
    return false;
  }

  ranks::Communicator& inner_;
  std::uint64_t gathers_left_;
  std::optional<Error> failure_;
};

Status serve(model::Decoder& decoder, const ranks::Communicator& communicator,
             const ranks::Channel& channel, bool leaves_at_once) {
  ASSIGN_OR_RETURN(const ranks::Bytes asked, channel.receive(MessageKind::kPages));
  std::uint32_t count = 0;
  std::memcpy(&count, asked.data(), sizeof count);
  ASSIGN_OR_RETURN(const kv::memory::PageBuffer pages,
                   kv::memory::PageBuffer::allocate(decoder.page_layout(), count));
  RETURN_IF_ERROR(channel.send(MessageKind::kReady, std::span<const std::byte>()));
  if (leaves_at_once) return ok_status();
  return RankWorker(decoder, pages, communicator, channel).run();
}

std::array<ranks::Channel, 2> channel_pair() {
  std::array<int, 2> ends = {};
  ASSERT(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) == 0, "sockets");
  return {ranks::Channel(ends[0]), ranks::Channel(ends[1])};
}

}  // namespace

ThreadWorkers::ThreadWorkers(const model::ModelParts& model, const kernels::KernelSet& kernels,
                             const BackendOptions& options, std::uint32_t count,
                             const FaultyRank& faulty)
    : ranks_(count) {
  for (std::uint32_t rank = 0; rank < count; ++rank) {
    std::array<ranks::Channel, 2> ends = channel_pair();
    own_ends_.push_back(std::move(ends[0]));
    rank_ends_.push_back(std::move(ends[1]));
  }
  for (std::uint32_t rank = 0; rank < count; ++rank) {
    threads_.emplace_back(
        [=, this, &kernels] { work(model, kernels, options, rank, faulty, rank_ends_[rank]); });
  }
}

ThreadWorkers::~ThreadWorkers() {
  own_ends_.clear();
  ranks_.leave("the engine ended");  // a rank may wait for a silent one
  for (std::thread& thread : threads_) thread.join();
}

std::unique_ptr<RanksBackend> ThreadWorkers::backend(const model::ModelParts& model,
                                                     const kernels::KernelSet& kernels,
                                                     const BackendOptions& options,
                                                     std::uint32_t count, const FaultyRank& faulty,
                                                     std::chrono::milliseconds limit) {
  const auto workers = std::make_shared<ThreadWorkers>(model, kernels, options, count, faulty);
  LoadedRanks loaded = {.owner = workers, .group = {}, .facts = {}, .threads = 1};
  loaded.group = std::make_unique<ranks::RankGroup>(std::move(workers->own_ends_), limit);
  const auto plan =
      model::plan_kv_groups(model.config, kernels, options.kv_cache_dtype, options.block_tokens);
  for (std::uint32_t rank = 0; rank < count; ++rank) {
    const auto own = model::Division(model.config, rank, count).divide(plan);
    loaded.facts.push_back({.page_bytes = own.layouts.front().page_bytes()});
  }
  auto made = RanksBackend::create(model.config, kernels, options, std::move(loaded));
  ASSERT(made.ok(), "the backend fits the model");
  return std::move(made).value();
}

void ThreadWorkers::work(const model::ModelParts& model, const kernels::KernelSet& kernels,
                         const BackendOptions& options, std::uint32_t rank,
                         const FaultyRank& faulty, const ranks::Channel& channel) {
  const bool is_faulty = faulty.fault != Fault::kNone && faulty.rank == rank;
  LeavingCommunicator communicator(ranks_.of(rank), is_faulty ? faulty.at : UINT64_MAX);
  ThreadPool pool(1 + rank % 2);
  model::Decoder decoder(model.config, model.weights, kernels, pool,
                         {.rows_max = options.scheduler.batched_tokens_max,
                          .kv_cache_dtype = options.kv_cache_dtype,
                          .block_tokens = options.block_tokens,
                          .communicator = &communicator});
  const Status outcome = serve(decoder, communicator, channel, is_faulty && faulty.at == 0);
  if (is_faulty && faulty.fault == Fault::kIsSilent) {
    while (channel.receive_header().ok()) {  // until the other end is closed
    }
  }
  const bool tells = !is_faulty || faulty.fault == Fault::kFails;
  if (!outcome.ok() && tells) {
    static_cast<void>(channel.send(MessageKind::kFailure, outcome.error().message));
  }
  if (!is_faulty || faulty.fault != Fault::kIsSilent) ranks_.leave("another rank ended");
  shutdown(channel.socket(), SHUT_RDWR);
}

}  // namespace pagoda::engine
