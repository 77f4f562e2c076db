// A tier in host memory: slots beside the pool, copied at once.
#pragma once

#include <cstddef>
#include <vector>

#include "kv/memory/page_buffer.h"
#include "kv/tiers/mover.h"

namespace pagoda::kv {

class HostMover final : public Mover {
 public:
  // Both buffers have pages of one size and must outlive the mover.
  HostMover(const memory::PageBuffer& pages, const memory::PageBuffer& slots);

  void start(const Move& move) override;
  std::vector<MoveReport> poll() override;

 private:
  const memory::PageBuffer& pages_;
  const memory::PageBuffer& slots_;
  std::vector<MoveReport> ended_;
};

}  // namespace pagoda::kv
