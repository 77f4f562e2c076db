// Who carries bytes between the pool's pages and another tier.
//
// The cache decides (which page goes to which slot, what is pinned meanwhile); a mover only copies,
// in its own time, and reports each move once. A failed move is a report, not an error: the bytes
// are then simply not there.
#pragma once

#include <cstdint>
#include <vector>

#include "base/strong_id.h"
#include "kv/ids.h"

namespace pagoda::kv {

// A page's worth of room in a tier outside the pool.
using SlotId = StrongId<struct SlotTag, std::uint32_t>;

enum class Direction : std::uint8_t {
  kOut,  // page -> slot
  kIn,   // slot -> page
};

struct Move {
  Direction direction = Direction::kOut;
  BlockId block = {};
  SlotId slot = {};
  NodeId node = {};  // whose rows they are
  std::uint32_t slice = 0;
};

struct MoveReport {
  Move move;
  bool done;  // false: the bytes did not arrive
};

class Mover {
 public:
  virtual ~Mover() = default;
  // Begins a move; its source and its target stay as they are until it is reported.
  virtual void start(const Move& move) = 0;
  // The moves that ended since the last call, in any order.
  virtual std::vector<MoveReport> poll() = 0;
};

}  // namespace pagoda::kv
