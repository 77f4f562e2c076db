// Pages that are copied out: held for a while, whatever else goes on.
#include "kv/cache_snapshot.h"
#include "kv/simulation.h"

namespace pagoda::kv {

void Simulation::pin_pages() {
  const std::vector<NodeId> nodes =
      random(2) == 0 ? cache_.eviction_candidates(1 + random(4)) : list_whole_blocks(cache_);
  if (nodes.empty()) return;
  for (std::uint64_t pages = 1 + random(3); pages-- > 0;) {
    const NodeId node = nodes[random(nodes.size())];
    const auto group = static_cast<std::uint32_t>(random(options_.groups.size()));
    const std::optional<BlockId> page = cache_.pin_page(node, cache_.hashes().of(node), group);
    if (page != cache_.tree().page(node, group)) return fail("pinned another page than is there");
    if (!page) continue;
    log("pin " + text(page->value()));
    PageOut out = {.block = *page, .rows = {}};
    for (std::uint32_t t = 0; t < options_.block_tokens; ++t) out.rows.push_back(row(*page, t));
    pages_out_.push_back(std::move(out));
    if (options_.sabotage == Sabotage::kEarlyUnpin) cache_.unpin_page(*page);
  }
}

// Some are out, in any order: as they were when they were pinned.
void Simulation::unpin_pages() {
  for (std::size_t i = pages_out_.size(); i-- > 0;) {
    if (random(2) != 0) continue;
    const PageOut out = pages_out_[i];
    pages_out_.erase(pages_out_.begin() + static_cast<std::ptrdiff_t>(i));
    log("unpin " + text(out.block.value()));
    for (std::uint32_t t = 0; t < options_.block_tokens; ++t) {
      if (row(out.block, t) != out.rows[t]) return fail("a page changed while it was copied out");
    }
    ++report_.pages_out;
    if (options_.sabotage != Sabotage::kEarlyUnpin) cache_.unpin_page(out.block);
  }
}

}  // namespace pagoda::kv
