// CpuRunner computes launches on this host's cores, at once: copies blocks, runs the decoder,
// samples.
#pragma once

#include <cstdint>
#include <vector>

#include "base/thread_pool.h"
#include "engine/backends/logits_sampler.h"
#include "engine/runner.h"
#include "kv/memory/page_buffer.h"
#include "model/decoder.h"

namespace pagoda::engine {

class CpuRunner final : public Runner {
 public:
  // All arguments must outlive the runner; the pool is the decoder's.
  CpuRunner(model::Decoder& decoder, const kv::memory::PageBuffer& pages, ThreadPool& pool);

  std::uint32_t hidden_width() const override { return decoder_.config().width; }
  std::uint32_t drafts_max() const override { return LogitsSampler::kRowsMax - 1; }
  bool observes_attention() const override { return true; }
  void launch(const Launch& launch) override;
  Collected collect() override;

 private:
  void forward(const Launch& launch);

  model::Decoder& decoder_;
  const kv::memory::PageBuffer& pages_;
  LogitsSampler sampler_;
  std::vector<TokenId> tokens_;
  std::vector<model::SequenceRows> sequences_;
  std::vector<std::uint8_t> nonfinite_;
  std::vector<float> hidden_;
};

}  // namespace pagoda::engine
