#include "engine/gpu_page_mover.h"

#include <utility>

namespace pagoda::engine {

GpuPageMover::GpuPageMover(GpuRunner& runner, device::Stream stream, device::Event launched,
                           device::Event moved)
    : runner_(runner),
      stream_(std::move(stream)),
      launched_(std::move(launched)),
      moved_(std::move(moved)) {}

Result<std::unique_ptr<kv::PageMover>> GpuPageMover::create(GpuRunner& runner) {
  ASSIGN_OR_RETURN(device::Stream stream, device::Stream::create());
  ASSIGN_OR_RETURN(device::Event launched, device::Event::create(device::EventUse::kOrder));
  ASSIGN_OR_RETURN(device::Event moved, device::Event::create(device::EventUse::kOrder));
  return std::unique_ptr<kv::PageMover>(
      new GpuPageMover(runner, std::move(stream), std::move(launched), std::move(moved)));
}

Result<kv::HostMemory> GpuPageMover::take_memory(std::uint64_t bytes) {
  ASSIGN_OR_RETURN(device::PinnedBuffer taken,
                   device::PinnedBuffer::allocate(bytes, "pages of other tiers"));
  const auto owner = std::make_shared<device::PinnedBuffer>(std::move(taken));
  return kv::HostMemory(owner->data(), [owner](std::byte*) {});
}

Status GpuPageMover::order() {
  if (runner_.launches() == launches_known_) return ok_status();
  const std::lock_guard lock(mutex_);
  RETURN_IF_ERROR(launched_.record(runner_.stream()));
  launches_known_ = runner_.launches();
  return ok_status();
}

// An event that was recorded again since order() stands for a later launch: waiting for that one is
// right, too.
Status GpuPageMover::move(std::span<const kv::PageMove> moves) {
  const Status moved = move_all(moves);
  // Copies that were given before the one that failed still run.
  if (!moved.ok()) static_cast<void>(stream_.wait());
  return moved;
}

Status GpuPageMover::move_all(std::span<const kv::PageMove> moves) {
  {
    const std::lock_guard lock(mutex_);
    RETURN_IF_ERROR(stream_.wait_for(launched_));
  }
  for (const kv::PageMove& each : moves) {
    RETURN_IF_ERROR(stream_.copy(each.to, each.from, each.bytes));
  }
  RETURN_IF_ERROR(moved_.record(stream_));
  return moved_.wait();
}

}  // namespace pagoda::engine
