// Which nodes have copies in one tier outside the pool, and which slots are free.
//
// A slot is written (begin_write, end_write), then kept until another needs its room: the copy that
// was used longest ago leaves, and its node is told to the caller. A slot that is being read is
// pinned. Slots have the states of blocks and are kept by the same pool.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "kv/blocks/block_pool.h"
#include "kv/evict/eviction_queue.h"
#include "kv/tiers/mover.h"

namespace pagoda::kv {

class TierTable {
 public:
  // Memory is taken for this many nodes; more may come.
  TierTable(std::uint32_t slots, std::uint32_t slices, std::size_t nodes = 0);

  std::uint32_t slots() const { return pool_.blocks(); }

  // The copy of a node's page, if there is one.
  std::optional<SlotId> find(NodeId node, std::uint32_t slice) const;
  // How many slices of the node have copies.
  std::uint32_t copies(NodeId node) const;

  struct Place {
    NodeId node;
    std::uint32_t slice;
  };
  // Whose copy a slot holds, if any.
  const std::optional<Place>& copy_in(SlotId slot) const { return places_[slot.value()]; }
  // Frees the slot that was used longest ago and is not in use; whose copy it was. Nothing when
  // there is none.
  std::optional<Place> displace();

  struct Writable {
    SlotId slot;
    // Whose copy made room, if any.
    std::optional<Place> displaced;
  };
  // Room for a new copy; nothing when every slot is being written or read.
  std::optional<Writable> begin_write();
  // The copy is there and belongs to the node from now on.
  void end_write(SlotId slot, NodeId node, std::uint32_t slice, Tick now);
  void abandon_write(SlotId slot);

  void begin_read(SlotId slot);
  void end_read(SlotId slot, Tick now);

  // A copy turned out to be bad: it goes, unless someone is still reading it (false).
  bool forget(SlotId slot);

  void check() const;

 private:
  std::size_t index(NodeId node, std::uint32_t slice) const {
    return std::size_t{node.value()} * slices_ + slice;
  }
  void detach(SlotId slot);
  void queue(SlotId slot);

  static constexpr std::uint32_t kNone = UINT32_MAX;

  std::uint32_t slices_;
  BlockPool pool_;
  EvictionQueue queue_;
  std::vector<std::uint32_t> slot_of_;        // [node, slice]
  std::vector<std::optional<Place>> places_;  // [slot]
};

}  // namespace pagoda::kv
