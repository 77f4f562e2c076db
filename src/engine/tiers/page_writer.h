// PageWriter keeps copies of pages in tiers: of blocks used twice, of blocks about to be evicted,
// and at a clean stop of as many as there is time for. Once half of the pool is taken, all of it is
// about to be evicted: the next prompts take the room of what is there, many blocks in one step,
// and that of a sequence as soon as it has ended. So blocks computed until then are written in the
// background, and from then on a block is written when it is whole.
//
// A page is pinned while a store copies it. Every store has a queue and pins of its own, so that a
// slow store keeps no other waiting. A block that finds no room in a queue is not kept: nobody
// waits for a write, and a store that refuses writes is passed over. Thread rule: the engine's
// thread.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "engine/tiers/tier_options.h"
#include "kv/cache.h"

namespace pagoda::engine {

class PageWriter {
 public:
  // All arguments must outlive the writer.
  PageWriter(const TierOptions& options, kv::Cache& cache, kv::StoreTicket& tickets);

  void set_space(const kv::SpaceId& space) { space_ = space; }
  // Nothing more is written.
  void drop_space();

  // Returns how many blocks used() takes at least without skipping one.
  std::size_t room() const;
  // Notes that these blocks are used again.
  void used(std::span<const kv::NodeId> nodes);
  // Queues the block for every store that other servers share.
  void hand_over(kv::NodeId node);
  // True: the block waits to be written to a shared store, or is being written.
  bool is_handing_over(const kv::BlockHash& block_hash) const;
  // Notes that these blocks are new.
  void sealed(std::span<const kv::NodeId> nodes);
  // False: the report is not of a write.
  bool take(const kv::StoreReport& report);
  // Writes blocks that are queued and blocks that are about to leave. `stands_still`: nothing runs
  // and the last plan began nothing (Scheduler::stands_still).
  void poll(bool lacks_blocks, bool stands_still);
  // Queues all whole blocks, most recently used first: for a clean stop, with poll() until
  // is_idle().
  void offload_all();
  // Writes that have not begun are dropped.
  void drop_queue();

  // While an owner's pages are removed from the stores none of them is written. Calls are paired.
  void forbid(kv::OwnerId owner) { forbidden_.push_back(owner); }
  void allow(kv::OwnerId owner);
  // True: a store is copying a private page of the owner.
  bool is_writing(kv::OwnerId owner) const;

  // Returns the address of pages that are written; nothing: none are, now or any more.
  const std::optional<kv::SpaceId>& space() const { return space_; }
  bool is_idle() const;
  std::uint64_t blocks_skipped() const { return blocks_skipped_; }
  std::size_t pages_pinned() const { return pins_.size(); }

 private:
  struct BlockHashHasher {
    std::size_t operator()(const kv::BlockHash& block_hash) const;
  };
  struct Wanted {
    kv::NodeId node;
    kv::BlockHash block_hash;
  };
  // WriteTarget holds the writes of one store.
  struct WriteTarget {
    kv::PageStore* store;
    std::deque<kv::BlockHash> queue = {};
    // The node of each queued block: the newest where a block was evicted and computed again.
    std::unordered_map<kv::BlockHash, kv::NodeId, BlockHashHasher> queued = {};
    std::size_t backlog_left = 0;  // blocks of backlog_ left, which is walked from its end
    std::size_t pins = 0;
    std::size_t idle_pins = 0;  // pins of pages that no sequence held
  };
  struct Pin {
    std::size_t target;
    kv::BlockId block;
    kv::BlockHash block_hash;
    std::optional<kv::OwnerId> owner;  // set for a private page
    bool was_idle;                     // no sequence held the page
  };

  // False: every store that takes writes has the block, or has it queued.
  bool want(kv::NodeId node);
  bool want(WriteTarget& target, kv::NodeId node);
  bool lacks(const WriteTarget& target, kv::NodeId node) const;
  bool is_being_written(const WriteTarget& target, const kv::BlockHash& block_hash) const;
  bool is_forbidden(kv::NodeId node) const;
  std::optional<kv::OwnerId> owner_of(kv::NodeId node) const;
  void note_pressure(bool lacks_blocks);
  void take_backlog(WriteTarget& target);
  bool may_write();
  bool is_short_of_room();
  void note_leaving();
  bool write(WriteTarget& target, const Wanted& wanted);
  bool is_held_for_stores(kv::BlockId block, bool was_idle) const;
  std::uint32_t groups() const { return cache_.tree().groups(); }
  std::size_t index_of(const WriteTarget& target) const {
    return static_cast<std::size_t>(&target - targets_.data());
  }
  bool may_pin(const WriteTarget& target) const;

  const TierOptions& options_;
  kv::Cache& cache_;
  kv::StoreTicket& tickets_;
  std::optional<kv::SpaceId> space_;
  std::vector<WriteTarget> targets_;               // [store]
  std::vector<kv::NodeId> backlog_;                // blocks to be queued for every store
  std::unordered_map<kv::StoreTicket, Pin> pins_;  // pages being written
  std::vector<kv::OwnerId> forbidden_;
  std::uint64_t evicted_seen_ = 0;  // CacheStats::blocks_evicted at the last look
  std::uint64_t free_seen_ = 0;     // blocks that were free at the last look
  std::uint64_t blocks_skipped_ = 0;
  bool under_pressure_ = false;
  bool stopping_ = false;
};

}  // namespace pagoda::engine
