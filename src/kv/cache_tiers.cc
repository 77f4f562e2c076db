// Pages out to another tier and back.
#include <algorithm>

#include "base/assert.h"
#include "kv/cache.h"

namespace pagoda::kv {

std::vector<Move> Cache::offload(const MigrationOptions& options) {
  std::vector<Move> moves;
  if (!tier_) return moves;
  // The head of the eviction queue, looked at and put back.
  std::vector<MigrationCandidate> candidates;
  const std::uint64_t look = 2 * options.moves_running_max;
  while (candidates.size() < look) {
    const std::optional<BlockId> block = next_victim();
    if (!block) break;
    // A region over its quota gives its blocks first, and the policy's turn gives them once more.
    const auto known = [&](const MigrationCandidate& other) { return other.block == *block; };
    if (std::any_of(candidates.begin(), candidates.end(), known)) continue;
    const NodeId node = pool_.owner(*block).value();
    const bool useless = !tree_.is_whole(node);  // open leaves stay here
    candidates.push_back(
        {.block = *block,
         .stats = stats(*block),
         .in_tier = useless || tier_->find(node, slice_of(node, *block)).has_value()});
  }
  for (const MigrationCandidate& candidate : candidates) queue_if_evictable(candidate.block);

  const TierPressure pressure = {.blocks = pool_.blocks(),
                                 .blocks_free = pool_.blocks_free(),
                                 .slots = tier_->slots(),
                                 .moves_running = offloads_running_};
  for (const BlockId block : plan_migration(pressure, candidates, now_, options)) {
    const NodeId node = pool_.owner(block).value();
    hold(block);
    const std::optional<TierTable::Writable> target = tier_->begin_write();
    if (!target) {
      release(block, pool_.last_use(block));
      break;
    }
    if (target->displaced) {
      announce(EventKind::kRemoved, Medium::kTier, target->displaced->node,
               target->displaced->slice);
      settle(target->displaced->node);
    }
    moves.push_back({.direction = Direction::kOut,
                     .block = block,
                     .slot = target->slot,
                     .node = node,
                     .slice = slice_of(node, block)});
    ++offloads_running_;
  }
  return moves;
}

std::variant<Load, OutOfBlocks> Cache::begin_load(const Match& match) {
  ASSERT(!match.nodes_in_tiers.empty(), "the match found something to load");
  const std::vector<NodeId>& nodes = match.nodes_in_tiers;
  const OutOfBlocks cost = {blocks_needed_to_load(nodes), blocks_available()};
  if (cost.blocks_needed > cost.blocks_available) return cost;
  const std::uint64_t tokens = nodes.size() * std::uint64_t{options_.block_tokens};
  Load load = {.moves = {}, .held = {}, .moves_running = 0, .end = nodes.back()};
  tree_.pin(nodes.back());
  for (std::uint32_t slice = 0; slice < slices(); ++slice) {
    const std::uint64_t first =
        memory::first_block_kept(options_.slices[slice], tokens, options_.block_tokens);
    for (std::uint64_t block = first; block < nodes.size(); ++block) {
      const NodeId node = nodes[block];
      if (const std::optional<BlockId> page = tree_.page(node, slice)) {
        hold(*page);
        load.held.push_back(*page);
        continue;
      }
      const SlotId slot = tier_->find(node, slice).value();
      tier_->begin_read(slot);
      load.moves.push_back({.direction = Direction::kIn,
                            .block = BlockId(),
                            .slot = slot,
                            .node = node,
                            .slice = slice});
    }
  }
  make_room(load.moves.size(), account_of(tree_.region(nodes.back()), kNoOwner));
  for (Move& move : load.moves) {
    move.block = pool_.load().value();
    note_created(move.block);
  }
  load.moves_running = load.moves.size();
  return load;
}

// Pages that come in, and idle ones that are held.
std::uint64_t Cache::blocks_needed_to_load(std::span<const NodeId> nodes) const {
  const std::uint64_t tokens = nodes.size() * std::uint64_t{options_.block_tokens};
  std::uint64_t needed = 0;
  for (std::uint32_t slice = 0; slice < slices(); ++slice) {
    const std::uint64_t first =
        memory::first_block_kept(options_.slices[slice], tokens, options_.block_tokens);
    for (std::uint64_t block = first; block < nodes.size(); ++block) {
      const bool is_here = tree_.page(nodes[block], slice).has_value();
      needed += !is_here || is_available(nodes[block], slice) ? 1 : 0;
    }
  }
  return needed;
}

void Cache::moved(const MoveReport& report, Load* load) {
  const Move& move = report.move;
  if (move.direction == Direction::kOut) {
    --offloads_running_;
    if (report.done) {
      tier_->end_write(move.slot, move.node, move.slice, ++now_);
      announce(EventKind::kMoved, Medium::kTier, move.node, move.slice);
    } else {
      tier_->abandon_write(move.slot);
    }
    release(move.block, pool_.last_use(move.block));  // to be copied out is not to be used
    return;
  }
  ASSERT(load != nullptr, "a page that comes in belongs to a load");
  --load->moves_running;
  tier_->end_read(move.slot, ++now_);
  if (!report.done) {
    if (tier_->forget(move.slot)) {
      announce(EventKind::kRemoved, Medium::kTier, move.node, move.slice);
    }
    return pool_.abandon(move.block);
  }
  BlockId page = move.block;
  if (const std::optional<BlockId> existing = tree_.page(move.node, move.slice)) {
    // Someone computed or loaded the same page meanwhile: the load goes on with that one.
    page = *existing;
    hold(page);
    if (options_.on_join) options_.on_join(move.block, page);
    pool_.abandon(move.block);
  } else {
    pool_.loaded(page);
    adopt(move.node, move.slice, page, {});
    note_sealed(move.node, move.slice);
    announce(EventKind::kMoved, Medium::kPool, move.node, move.slice);
  }
  load->held.push_back(page);
}

void Cache::finish_load(Load& load) {
  ASSERT(load.moves_running == 0, "every move of the load was reported");
  for (std::size_t i = load.held.size(); i-- > 0;) release(load.held[i]);
  load.held.clear();
  tree_.unpin(load.end.value());
  settle(load.end.value());
}

}  // namespace pagoda::kv
