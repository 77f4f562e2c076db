#include "ranks/thread_ranks.h"

#include <cstring>
#include <thread>

namespace pagoda::ranks {

class ThreadRanks::Member final : public Communicator {
 public:
  Member(ThreadRanks& ranks, std::uint32_t rank) : ranks_(ranks), rank_(rank) {}

  std::uint32_t rank() const override { return rank_; }
  std::uint32_t ranks() const override { return ranks_.count(); }
  void gather(std::byte* data, std::span<const std::size_t> offsets) override {
    ranks_.gather(*this, data, offsets, true);
  }
  void gather_to_first(std::byte* data, std::span<const std::size_t> offsets) override {
    ranks_.gather(*this, data, offsets, rank_ == 0);
  }
  const std::optional<Error>& failure() const override { return failure_; }
  void fail(const Error& error) { failure_ = error; }

 private:
  ThreadRanks& ranks_;
  std::uint32_t rank_;
  std::optional<Error> failure_;
};

ThreadRanks::ThreadRanks(std::uint32_t ranks, std::chrono::milliseconds limit)
    : limit_(limit), data_(ranks) {
  for (std::uint32_t rank = 0; rank < ranks; ++rank) {
    members_.push_back(std::make_unique<Member>(*this, rank));
  }
}

ThreadRanks::~ThreadRanks() = default;

Communicator& ThreadRanks::of(std::uint32_t rank) { return *members_[rank]; }

void ThreadRanks::leave(const std::string& why) {
  const std::scoped_lock lock(mutex_);
  if (!failure_) failure_ = Error{ErrorCode::kIo, why};
  all_here_.notify_all();
}

void ThreadRanks::run(const std::function<void(Communicator&)>& work) {
  std::vector<std::thread> threads;
  for (const auto& member : members_) threads.emplace_back([&] { work(*member); });
  for (std::thread& thread : threads) thread.join();
}

void ThreadRanks::gather(Member& member, std::byte* data, std::span<const std::size_t> offsets,
                         bool to_all) {
  if (member.failure()) return;
  data_[member.rank()] = data;
  bool is_met = meet();
  if (is_met && to_all) {
    for (std::size_t rank = 0; rank < members_.size(); ++rank) {
      const std::size_t bytes = offsets[rank + 1] - offsets[rank];
      if (rank == member.rank() || bytes == 0) continue;
      std::memcpy(data + offsets[rank], data_[rank] + offsets[rank], bytes);
    }
  }
  is_met = is_met && meet();  // until all have copied
  if (is_met) return;
  const std::scoped_lock lock(mutex_);
  member.fail(*failure_);
}

bool ThreadRanks::meet() {
  std::unique_lock lock(mutex_);
  if (failure_) return false;
  const std::uint64_t meeting = meeting_;
  if (++here_ == members_.size()) {
    here_ = 0;
    ++meeting_;
    all_here_.notify_all();
    return true;
  }
  const auto is_over = [&] { return meeting_ != meeting || failure_; };
  if (!all_here_.wait_for(lock, limit_, is_over)) {
    failure_ = Error{ErrorCode::kIo, "a rank did not come in time"};
    all_here_.notify_all();
  }
  return meeting_ != meeting;
}

}  // namespace pagoda::ranks
