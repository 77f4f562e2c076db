// Ranks that are threads of one process: the Communicator of tests.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "ranks/communicator.h"

namespace pagoda::ranks {

class ThreadRanks {
 public:
  explicit ThreadRanks(std::uint32_t ranks,
                       std::chrono::milliseconds limit = std::chrono::minutes(5));
  ~ThreadRanks();

  std::uint32_t count() const { return static_cast<std::uint32_t>(members_.size()); }
  Communicator& of(std::uint32_t rank);
  // A rank is gone: whoever waits for it, or will, fails with this message.
  void leave(const std::string& why);
  // Runs work(communicator) on a thread for each rank, and waits for all.
  void run(const std::function<void(Communicator&)>& work);

 private:
  class Member;

  void gather(Member& member, std::byte* data, std::span<const std::size_t> offsets, bool to_all);
  // Waits until every rank is here; false when one does not come.
  bool meet();

  std::chrono::milliseconds limit_;
  std::vector<std::unique_ptr<Member>> members_;
  std::vector<std::byte*> data_;  // of each rank, while it gathers
  std::mutex mutex_;
  std::condition_variable all_here_;
  std::uint32_t here_ = 0;
  std::uint64_t meeting_ = 0;
  std::optional<Error> failure_;  // under mutex_
};

}  // namespace pagoda::ranks
