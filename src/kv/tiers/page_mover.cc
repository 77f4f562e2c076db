#include "kv/tiers/page_mover.h"

#include <algorithm>
#include <cstring>

#include "base/large_array.h"

namespace pagoda::kv {
namespace {

class MemoryMover final : public PageMover {
 public:
  Result<HostMemory> take_memory(std::uint64_t bytes) override {
    auto* const memory = static_cast<std::byte*>(take_large(std::max<std::uint64_t>(1, bytes)));
    return HostMemory(memory, [](std::byte* taken) { give_large(taken); });
  }
  Status order() override { return ok_status(); }
  Status move(std::span<const PageMove> moves) override {
    for (const PageMove& each : moves) std::memcpy(each.to, each.from, each.bytes);
    return ok_status();
  }
};

}  // namespace

std::unique_ptr<PageMover> memory_mover() { return std::make_unique<MemoryMover>(); }

}  // namespace pagoda::kv
