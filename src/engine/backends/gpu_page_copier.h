// GpuPageCopier copies pages between a GPU's memory and pinned memory of the host: each in one
// copy, on a stream of its own beside the computing stream.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>

#include "device/device.h"
#include "engine/backends/gpu_runner.h"
#include "kv/tiers/page_copier.h"

namespace pagoda::engine {

class GpuPageCopier final : public kv::PageCopier {
 public:
  // The runner must outlive the copier.
  static Result<std::unique_ptr<kv::PageCopier>> create(GpuRunner& runner);

  Result<kv::HostMemory> take_memory(std::uint64_t bytes) override;
  // Copies wait for the launches that the runner was given so far. Later launches run beside the
  // copies.
  Status order() override;
  Status copy(std::span<const kv::PageCopy> moves) override;

 private:
  GpuPageCopier(GpuRunner& runner, device::Stream stream, device::GpuEvent launched,
                device::GpuEvent moved);
  Status move_all(std::span<const kv::PageCopy> moves);

  GpuRunner& runner_;
  device::Stream stream_;
  std::mutex mutex_;
  device::GpuEvent launched_;         // under mutex_: the last launch that copies wait for
  std::uint64_t launches_known_ = 0;  // the cache's thread: launches of the runner so far
  device::GpuEvent moved_;
};

}  // namespace pagoda::engine
