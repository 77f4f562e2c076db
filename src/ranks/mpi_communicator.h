// Ranks that are processes of an MPI job. MPI's header is included in mpi_communicator.cc alone.
#pragma once

#include <chrono>
#include <functional>
#include <vector>

#include "ranks/communicator.h"

namespace pagoda::ranks {

class MpiCommunicator final : public Communicator {
 public:
  // Joins the job. At most one object of a process, once.
  MpiCommunicator();
  ~MpiCommunicator() override;
  MpiCommunicator(const MpiCommunicator&) = delete;
  MpiCommunicator& operator=(const MpiCommunicator&) = delete;

  // Bounds every wait for another rank. `on_wait` is called now and then by gathers, at least once
  // a second while they wait.
  void set_limit(std::chrono::milliseconds limit, std::function<void()> on_wait);

  std::uint32_t rank() const override { return rank_; }
  std::uint32_t ranks() const override { return ranks_; }
  void gather(std::byte* data, std::span<const std::size_t> offsets) override;
  void gather_to_first(std::byte* data, std::span<const std::size_t> offsets) override;
  const std::optional<Error>& failure() const override { return failure_; }

 private:
  using Clock = std::chrono::steady_clock;

  bool place_parts(std::span<const std::size_t> offsets);
  // `request` is an MPI_Request.
  void wait(void* request, int started);
  void show_life();

  std::uint32_t rank_ = 0;
  std::uint32_t ranks_ = 1;
  std::chrono::milliseconds limit_{60'000};
  std::function<void()> on_wait_;
  Clock::time_point shown_ = Clock::now();
  std::vector<int> counts_;  // of parts, in bytes
  std::vector<int> begins_;
  std::optional<Error> failure_;
};

}  // namespace pagoda::ranks
