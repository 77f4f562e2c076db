// CpuBackend is a model made ready to generate on this host's cores: decoder, pages, cache and
// runner, sized to each other.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>

#include "base/result.h"
#include "engine/backends/cpu_runner.h"
#include "engine/backends/paged_backend.h"
#include "kv/memory/page_buffer.h"
#include "model/decoder.h"

namespace pagoda::engine {

class CpuBackend final : public PagedBackend {
 public:
  // Config, weights and the kernel set must outlive the backend. Without kv_bytes the cache takes
  // kKvMemoryShare of free memory. An error names both numbers when not even the smallest context
  // fits.
  static Result<std::unique_ptr<CpuBackend>> create(const model::Config& config,
                                                    const model::Weights& weights,
                                                    const kernels::KernelSet& kernels,
                                                    const BackendOptions& options);

  Runner& runner() override { return *runner_; }
  std::string device_name() const override;
  std::string kernel_set() const override { return std::string(decoder_.kernel_set().name); }
  std::uint64_t workspace_bytes() const override { return decoder_.workspace_bytes(); }
  // Nothing: stores read and write pages in host memory by themselves.
  Result<std::unique_ptr<kv::PageCopier>> create_page_copier() override {
    return std::unique_ptr<kv::PageCopier>();
  }

 private:
  CpuBackend(const model::Config& config, const model::Weights& weights,
             const kernels::KernelSet& kernels, const BackendOptions& options);
  // Packs the weights. All that are needed are there before KV takes its share of free memory.
  static Result<std::unique_ptr<CpuBackend>> load(const model::Config& config,
                                                  const model::Weights& weights,
                                                  const kernels::KernelSet& kernels,
                                                  const BackendOptions& options);
  // `share`: of the memory for KV, beside that of a draft model.
  Status open(const model::Config& config, const BackendOptions& options, double share);
  Status allocate_pages(const BackendOptions& options, double share);
  OnDeduplicate duplicate_check(const BackendOptions& options);
  std::span<std::byte> page(kv::BlockId block) override;

  model::Decoder decoder_;
  std::optional<kv::memory::PageBuffer> pages_;
  std::optional<CpuRunner> runner_;
};

}  // namespace pagoda::engine
