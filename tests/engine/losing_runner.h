// LosingRunner computes like another runner until launch number `loses_at`, which the device does
// not survive.
#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

#include "engine/runner.h"

namespace pagoda::engine {

class LosingRunner final : public Runner {
 public:
  explicit LosingRunner(Runner& inner) : inner_(inner) {}

  std::uint32_t launches_ahead() const override { return inner_.launches_ahead(); }
  void launch(const Launch& launch) override {
    ++launches_;
    if (!is_lost()) inner_.launch(launch);
  }
  Collected collect() override {
    if (is_lost()) return {.samples = {}, .scores = {}, .lost = &error_};
    return inner_.collect();
  }

  // Launches count from 1.
  void lose_at(std::uint64_t launch) { loses_at_ = launch; }
  std::uint64_t launches() const { return launches_; }

 private:
  bool is_lost() const { return launches_ >= loses_at_; }

  Runner& inner_;
  Error error_ = {ErrorCode::kIo, "GPU: launching a graph: it fell off the bus"};
  std::atomic<std::uint64_t> launches_{0};
  std::atomic<std::uint64_t> loses_at_{UINT64_MAX};
};

// AheadRunner samples token 1, one launch ahead, as a device does.
class AheadRunner final : public Runner {
 public:
  std::uint32_t launches_ahead() const override { return 1; }
  void launch(const Launch& launch) override {
    auto& samples = samples_[launched_++ % 2];
    samples.assign(launch.samples.size(), Result<SampledToken>(SampledToken{TokenId(1), {}}));
    scores_.resize(launch.scores.size());
  }
  Collected collect() override { return {samples_[collected_++ % 2], scores_}; }

 private:
  std::vector<Result<SampledToken>> samples_[2];
  std::vector<TokenScore> scores_;
  std::uint64_t launched_ = 0;
  std::uint64_t collected_ = 0;
};

}  // namespace pagoda::engine
