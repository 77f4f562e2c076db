#include "engine/backends/gpu_page_copier.h"

#include <utility>

namespace pagoda::engine {

GpuPageCopier::GpuPageCopier(GpuRunner& runner, device::Stream stream, device::GpuEvent launched,
                             device::GpuEvent moved)
    : runner_(runner),
      stream_(std::move(stream)),
      launched_(std::move(launched)),
      moved_(std::move(moved)) {}

Result<std::unique_ptr<kv::PageCopier>> GpuPageCopier::create(GpuRunner& runner) {
  ASSIGN_OR_RETURN(device::Stream stream, device::Stream::create());
  ASSIGN_OR_RETURN(device::GpuEvent launched,
                   device::GpuEvent::create(device::GpuEventUse::kOrder));
  ASSIGN_OR_RETURN(device::GpuEvent moved, device::GpuEvent::create(device::GpuEventUse::kOrder));
  return std::unique_ptr<kv::PageCopier>(
      new GpuPageCopier(runner, std::move(stream), std::move(launched), std::move(moved)));
}

Result<kv::HostMemory> GpuPageCopier::take_memory(std::uint64_t bytes) {
  ASSIGN_OR_RETURN(device::PinnedBuffer taken,
                   device::PinnedBuffer::allocate(bytes, "pages of other tiers"));
  const auto owner = std::make_shared<device::PinnedBuffer>(std::move(taken));
  return kv::HostMemory(owner->data(), [owner](std::byte*) {});
}

Status GpuPageCopier::order() {
  if (runner_.launches() == launches_known_) return ok_status();
  const std::lock_guard lock(mutex_);
  RETURN_IF_ERROR(launched_.record(runner_.stream()));
  launches_known_ = runner_.launches();
  return ok_status();
}

// An event that was recorded again since order() stands for a later launch: waiting for the later
// launch is right, too.
Status GpuPageCopier::copy(std::span<const kv::PageCopy> moves) {
  const Status moved = move_all(moves);
  // Copies that were given before the failed one still run.
  if (!moved.ok()) static_cast<void>(stream_.wait());
  return moved;
}

Status GpuPageCopier::move_all(std::span<const kv::PageCopy> moves) {
  {
    const std::lock_guard lock(mutex_);
    RETURN_IF_ERROR(stream_.wait_for(launched_));
  }
  for (const kv::PageCopy& each : moves) {
    RETURN_IF_ERROR(stream_.copy(each.to, each.from, each.bytes));
  }
  RETURN_IF_ERROR(moved_.record(stream_));
  return moved_.wait();
}

}  // namespace pagoda::engine
