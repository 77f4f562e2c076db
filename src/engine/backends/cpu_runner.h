// CpuRunner computes launches on this host's cores, at once: copies blocks, runs the decoder,
// samples.
#pragma once

#include <cstdint>
#include <vector>

#include "base/thread_pool.h"
#include "engine/backends/mask_thread.h"
#include "engine/backends/sample_row.h"
#include "engine/runner.h"
#include "kv/memory/page_buffer.h"
#include "model/decoder.h"

namespace pagoda::engine {

class CpuRunner final : public Runner {
 public:
  // All arguments must outlive the runner; the pool is the decoder's.
  CpuRunner(model::Decoder& decoder, const kv::memory::PageBuffer& pages, ThreadPool& pool);

  std::uint32_t hidden_width() const override { return decoder_.config().width; }
  std::uint32_t drafts_max() const override { return kLogitRowsMax - 1; }
  bool observes_attention() const override { return true; }
  void launch(const Launch& launch) override;
  Collected collect() override;

 private:
  // At most so many rows of logits are computed together: this bounds their memory, [kLogitRowsMax,
  // vocabulary].
  static constexpr std::size_t kLogitRowsMax = 64;

  void forward(const Launch& launch);
  void use_logits(const Launch& launch, std::span<const std::uint32_t> rows);

  model::Decoder& decoder_;
  const kv::memory::PageBuffer& pages_;
  ThreadPool& pool_;
  std::vector<TokenId> tokens_;
  std::vector<model::SequenceRows> sequences_;
  std::vector<std::uint32_t> logit_rows_;
  std::vector<float> logits_;
  std::vector<SamplerScratch> scratch_;  // [thread]
  MaskThread masks_;
  std::vector<SampleProgress> progress_;  // [sample]
  std::vector<Result<SampledToken>> samples_;
  std::vector<TokenScore> scores_;
  std::vector<std::uint8_t> nonfinite_;
  std::vector<float> hidden_;
};

}  // namespace pagoda::engine
