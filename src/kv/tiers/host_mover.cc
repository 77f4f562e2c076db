#include "kv/tiers/host_mover.h"

#include <cstring>
#include <utility>

#include "base/assert.h"

namespace pagoda::kv {

HostMover::HostMover(const memory::PageBuffer& pages, const memory::PageBuffer& slots)
    : pages_(pages), slots_(slots) {
  ASSERT(pages.layout().page_bytes() == slots.layout().page_bytes(), "pages of one size");
}

void HostMover::start(const Move& move) {
  std::byte* const page = pages_.page(move.block);
  std::byte* const slot = slots_.page(BlockId(move.slot.value()));
  const bool out = move.direction == Direction::kOut;
  std::memcpy(out ? slot : page, out ? page : slot, pages_.layout().page_bytes());
  ended_.push_back({move, true});
}

std::vector<MoveReport> HostMover::poll() { return std::exchange(ended_, {}); }

}  // namespace pagoda::kv
