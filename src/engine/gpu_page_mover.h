// Pages between a GPU's memory and pinned memory of the host: each in one copy, on a stream of its
// own beside the one that computes.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>

#include "device/device.h"
#include "engine/gpu_runner.h"
#include "kv/tiers/page_mover.h"

namespace pagoda::engine {

class GpuPageMover final : public kv::PageMover {
 public:
  // The runner must outlive the mover.
  static Result<std::unique_ptr<kv::PageMover>> create(GpuRunner& runner);

  Result<kv::HostMemory> take_memory(std::uint64_t bytes) override;
  // Launches that the runner was given come first. Those that follow run beside the copies.
  Status order() override;
  Status move(std::span<const kv::PageMove> moves) override;

 private:
  GpuPageMover(GpuRunner& runner, device::Stream stream, device::Event launched,
               device::Event moved);
  Status move_all(std::span<const kv::PageMove> moves);

  GpuRunner& runner_;
  device::Stream stream_;
  std::mutex mutex_;
  device::Event launched_;            // under mutex_: the last launch that moves wait for
  std::uint64_t launches_known_ = 0;  // the cache's thread: of the runner's
  device::Event moved_;
};

}  // namespace pagoda::engine
