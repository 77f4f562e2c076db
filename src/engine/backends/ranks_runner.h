// RanksRunner has launches computed by several ranks, and samples on this host. The end, the
// failure or the silence of a rank is a lost device: nothing that it half computed is a result.
#pragma once

#include <cstdint>
#include <vector>

#include "base/thread_pool.h"
#include "engine/backends/logits_sampler.h"
#include "engine/runner.h"
#include "model/config.h"
#include "ranks/rank_group.h"

namespace pagoda::engine {

class RanksRunner final : public Runner {
 public:
  // All must outlive the runner. A launch has at most `rows_max` rows.
  RanksRunner(const model::Config& config, const kernels::KernelSet& kernels,
              std::uint32_t block_tokens, std::size_t rows_max, ranks::RankGroup& group,
              ThreadPool& pool);

  std::uint32_t hidden_width() const override { return width_; }
  std::uint32_t drafts_max() const override { return LogitsSampler::kRowsMax - 1; }
  bool may_vanish() const override { return true; }
  std::optional<Error> find_loss() override;
  std::uint64_t bytes_exchanged() const override { return bytes_exchanged_; }
  void launch(const Launch& launch) override;
  Collected collect() override;

 private:
  bool take_result(const Launch& launch);
  bool take_logits(std::span<float> logits);

  std::uint32_t width_;
  std::uint32_t block_tokens_;
  ranks::RankGroup& group_;
  LogitsSampler sampler_;
  std::vector<std::byte> message_;
  std::vector<std::uint8_t> nonfinite_;
  std::vector<float> hidden_;
  std::uint64_t bytes_exchanged_ = 0;
};

}  // namespace pagoda::engine
