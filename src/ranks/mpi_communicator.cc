#include "ranks/mpi_communicator.h"

#include <fmt/format.h>
#include <mpi.h>
#include <sched.h>

#include <climits>
#include <thread>

namespace pagoda::ranks {
namespace {

// A wait spins as long as a gather usually takes, then lets others run, then sleeps.
constexpr int kSpins = 200;
constexpr std::chrono::milliseconds kYields{5};
constexpr std::chrono::microseconds kSleep{50};
constexpr std::chrono::seconds kLifeEvery{1};

}  // namespace

MpiCommunicator::MpiCommunicator() {
  int level = 0;
  MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &level);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  int rank = 0;
  int ranks = 1;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  rank_ = static_cast<std::uint32_t>(rank);
  ranks_ = static_cast<std::uint32_t>(ranks);
  counts_.resize(ranks_);
  begins_.resize(ranks_);
}

// A rank that failed leaves others behind, whom a finalize would wait for.
MpiCommunicator::~MpiCommunicator() {
  if (failure_) MPI_Abort(MPI_COMM_WORLD, 1);
  MPI_Finalize();
}

void MpiCommunicator::set_limit(std::chrono::milliseconds limit, std::function<void()> on_wait) {
  limit_ = limit;
  on_wait_ = std::move(on_wait);
}

bool MpiCommunicator::place_parts(std::span<const std::size_t> offsets) {
  if (failure_) return false;
  show_life();
  if (offsets.back() > INT_MAX) {
    failure_ = Error{
        ErrorCode::kOutOfRange,
        fmt::format("ranks exchange {} bytes at once, of at most {}", offsets.back(), INT_MAX)};
    return false;
  }
  for (std::uint32_t rank = 0; rank < ranks_; ++rank) {
    counts_[rank] = static_cast<int>(offsets[rank + 1] - offsets[rank]);
    begins_[rank] = static_cast<int>(offsets[rank]);
  }
  return true;
}

void MpiCommunicator::gather(std::byte* data, std::span<const std::size_t> offsets) {
  if (!place_parts(offsets)) return;
  MPI_Request request = MPI_REQUEST_NULL;
  const int started = MPI_Iallgatherv(MPI_IN_PLACE, 0, MPI_BYTE, data, counts_.data(),
                                      begins_.data(), MPI_BYTE, MPI_COMM_WORLD, &request);
  wait(&request, started);
}

void MpiCommunicator::gather_to_first(std::byte* data, std::span<const std::size_t> offsets) {
  if (!place_parts(offsets)) return;
  const void* const mine = rank_ == 0 ? MPI_IN_PLACE : data + offsets[rank_];
  MPI_Request request = MPI_REQUEST_NULL;
  const int started = MPI_Igatherv(mine, counts_[rank_], MPI_BYTE, data, counts_.data(),
                                   begins_.data(), MPI_BYTE, 0, MPI_COMM_WORLD, &request);
  wait(&request, started);
}

void MpiCommunicator::wait(void* request, int started) {
  int is_done = 0;
  int outcome = started;
  for (int i = 0; i < kSpins && outcome == MPI_SUCCESS && is_done == 0; ++i) {
    outcome = MPI_Test(static_cast<MPI_Request*>(request), &is_done, MPI_STATUS_IGNORE);
  }
  if (outcome == MPI_SUCCESS && is_done != 0) return;
  const Clock::time_point began = Clock::now();
  while (outcome == MPI_SUCCESS && is_done == 0) {
    const auto waited = Clock::now() - began;
    if (waited >= limit_) {
      failure_ =
          Error{ErrorCode::kIo, fmt::format("waited {} s for another rank", limit_.count() / 1000)};
      return;
    }
    if (waited < kYields) {
      sched_yield();
    } else {
      std::this_thread::sleep_for(kSleep);
    }
    show_life();
    outcome = MPI_Test(static_cast<MPI_Request*>(request), &is_done, MPI_STATUS_IGNORE);
  }
  if (outcome != MPI_SUCCESS) {
    failure_ = Error{ErrorCode::kIo, fmt::format("MPI failed with {}", outcome)};
  }
}

void MpiCommunicator::show_life() {
  const Clock::time_point now = Clock::now();
  if (now - shown_ < kLifeEvery) return;
  shown_ = now;
  if (on_wait_) on_wait_();
}

}  // namespace pagoda::ranks
