// GpuRunner computes launches on a GPU, one ahead: while a step runs the next is planned and handed
// over.
//
// Tokens are sampled on the GPU, greedily or at random, and one number comes back for each. A
// request that changes or reports logits (penalties, bias, grammars, log-probabilities, forbidden
// tokens) has
// its row copied to the host and sampled there, by the code of the CPU, which gives the same
// tokens. Rows of draft tokens are sampled as if the tokens before them were accepted; the host
// compares. An input token that the launch before sampled is taken on the GPU; where the host
// samples it, the next launch waits for the host. Hidden states are normed on the GPU and copied to
// the host, where the engine adds them up.
//
// When the GPU fails it is lost: nothing is launched any more, and every collect() says so.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "base/thread_pool.h"
#include "device/device.h"
#include "engine/backends/sample_row.h"
#include "engine/runner.h"
#include "model/gpu_decoder.h"

namespace pagoda::engine {

class GpuRunner final : public Runner {
 public:
  // All arguments must outlive the runner. `kernels` samples on the host.
  static Result<std::unique_ptr<GpuRunner>> create(model::GpuDecoder& decoder, std::byte* pages,
                                                   ThreadPool& pool,
                                                   const kernels::KernelSet& kernels);

  std::uint32_t launches_ahead() const override { return 1; }
  std::uint32_t hidden_width() const override { return decoder_.config().width; }
  std::uint32_t drafts_max() const override { return decoder_.options().draft_rows_max; }
  std::uint32_t launch_drafts_max() const override { return decoder_.options().draft_rows_max; }
  // Up to some hundred rows a step reads weights above all.
  float row_cost() const override { return 0.01f; }
  void launch(const Launch& launch) override;
  Collected collect() override;

  // The launches so far and the stream they run on: for work that must come after them.
  std::uint64_t launches() const { return launched_; }
  const device::Stream& stream() const { return decoder_.stream(); }

 private:
  // Pending is a launch until it is collected. Two of them alternate.
  struct Pending {
    std::vector<LaunchSample> samples;
    std::vector<TokenId> drafts;           // that `samples` point to
    std::vector<SampleProgress> progress;  // [sample]
    std::vector<LaunchScore> scores;
    std::vector<std::uint32_t> logit_rows;  // ascending
    // [sample], indices of its first row into logit_rows and device_samples, where those of its
    // draft tokens follow. kOnHost: the host samples its rows.
    std::vector<std::uint32_t> sample_logit;
    std::vector<std::uint32_t> device_sample;
    std::vector<std::uint32_t> score_logit;
    std::vector<kernels::cuda::GpuSamplingParams> device_samples;
    bool needs_logits = false;
    bool finished = false;     // all samples are known
    bool makes_graph = false;  // a CUDA graph was made while it ran
    std::optional<device::GpuEvent> done;
    device::PinnedBuffer sampled_tokens;
    device::PinnedBuffer nonfinite_words;        // [LaunchRows], as the GPU wrote them
    std::vector<std::uint64_t> first_positions;  // [LaunchRows]
    std::vector<std::uint8_t> nonfinite;
    std::size_t hidden_rows = 0;
    device::PinnedBuffer hidden_room;          // [logit_rows_max, width]
    std::vector<float> hidden;                 // of launches that have more rows than that
    std::vector<Result<SampledToken>> chosen;  // as `progress` places them
    std::vector<TokenScore> scored;
  };

  GpuRunner(model::GpuDecoder& decoder, std::byte* pages, ThreadPool& pool,
            const kernels::KernelSet& kernels);
  Status take_memory();
  static void keep(const Launch& launch, Pending& pending);
  Status start(const Launch& launch, Pending* before, Pending& pending);
  Status copy_logits(const Pending& pending);
  Status fetch_nonfinite(Pending& pending);
  Status fetch_hidden(std::span<const std::uint32_t> rows, Pending& pending);
  Status copy_hidden(std::span<const std::uint32_t> rows, Pending& pending);
  Status copy_blocks(std::span<const kv::Copy> copies);
  void gather_rows(const Launch& launch, Pending* before);
  void find_last_token(const LaunchRows& from, Pending* before, model::GpuRows& rows);
  void list_logit_rows(const Launch& launch, Pending& pending);
  void list_device_samples(Pending& pending);
  Status compute_in_groups(std::span<const std::uint32_t> hidden_rows, Pending& pending);
  void finish(Pending& pending);
  Status wait_and_choose(Pending& pending);
  static void take_sampled(std::size_t sample, Pending& pending);
  static void read_nonfinite(Pending& pending);
  void use_logits(Pending& pending, std::uint32_t begin, std::uint32_t count);
  void fail(Pending& pending, const Error& error);

  model::GpuDecoder& decoder_;
  std::byte* pages_;
  ThreadPool& pool_;
  std::array<Pending, 2> pendings_;
  std::uint64_t launched_ = 0;
  std::uint64_t collected_ = 0;
  std::optional<Error> failure_;  // set: the GPU is lost

  std::vector<model::GpuRows> rows_;
  std::vector<kernels::cuda::BlockCopy> copies_;
  std::size_t cursor_ = 0;                // where the last sample of the launch before was found
  device::PinnedBuffer logits_;           // [logit_rows_max, vocabulary]
  std::vector<std::uint32_t> host_rows_;  // of logits that are copied to the host
  std::vector<SamplerScratch> scratch_;   // [thread]
  std::vector<SamplingState*> masked_;    // those of a launch whose grammar wants a mask
};

}  // namespace pagoda::engine
