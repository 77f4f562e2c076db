#include "engine/tiers/page_leases.h"

#include <algorithm>
#include <utility>

#include "base/assert.h"
#include "engine/tiers/page_label.h"

namespace pagoda::engine {

// Pages of a model that has changed are given to nobody.
bool PageLeases::may_lease() const {
  return is_on() && space_ && (!options_.is_model_unchanged || options_.is_model_unchanged());
}

std::optional<kv::LeasedPage> PageLeases::lease(kv::NodeId node, const kv::BlockHash& hash,
                                                std::uint32_t group) {
  const std::optional<kv::BlockId> block = cache_.pin_page(node, hash, group);
  if (!block) return std::nullopt;
  const auto most =
      static_cast<std::size_t>(options_.lease_share * static_cast<double>(cache_.pool().blocks()));
  if (!leased_.contains(*block) && leased_.size() >= most) {
    cache_.unpin_page(*block);
    return std::nullopt;
  }
  Pinned& pinned = leased_[*block];
  ++pinned.leases;
  const kv::SaltId region = cache_.tree().region(node);
  if (region != kv::kPublic) pinned.owner = cache_.salts().owner(region);
  has_revoked_ = false;
  return kv::LeasedPage{.label = label_of(cache_, options_, *space_, node, group),
                        .block = *block,
                        .page = options_.page_at(*block)};
}

std::vector<kv::LeasedPage> PageLeases::lease(std::span<const kv::PageKey> keys) {
  std::vector<kv::LeasedPage> pages;
  if (!may_lease()) return pages;
  for (const kv::PageKey& key : keys) {
    const std::optional<kv::NodeId> node = cache_.hashes().find(key.hash);
    if (key.space != *space_ || !node || key.group >= cache_.tree().groups()) break;
    std::optional<kv::LeasedPage> page = lease(*node, key.hash, key.group);
    if (!page) break;
    pages.push_back(*std::move(page));
  }
  return pages;
}

std::size_t PageLeases::hand_over(std::span<const kv::NodeId> nodes,
                                  std::span<const kv::BlockHash> hashes,
                                  std::span<const kv::memory::AttentionSpec> groups) {
  if (!is_on()) return 0;
  std::vector<kv::BlockHash> prompt(hashes.begin(), hashes.end());
  if (!may_lease()) {
    options_.lessee->take({}, std::move(prompt));
    return 0;
  }
  const std::uint32_t block_tokens = cache_.options().block_tokens;
  const bool has_windows =
      std::any_of(groups.begin(), groups.end(), [](const auto& spec) { return spec.window != 0; });
  std::vector<kv::LeasedPage> pages;
  std::size_t blocks = 0;
  for (bool is_whole = true; blocks < nodes.size(); ++blocks) {
    for (std::uint32_t group = 0; group < groups.size() && is_whole; ++group) {
      // The other server looks for whole blocks before the prompt's last token, which may be one
      // less.
      const std::uint64_t tokens = nodes.size() * block_tokens;
      const bool is_full = groups[group].window == 0;
      const bool is_seen =
          is_full || kv::memory::BlocksKept(groups[group], tokens, block_tokens).contains(blocks);
      const bool is_seen_before =
          is_full || kv::memory::BlocksKept(groups[group], tokens - block_tokens, block_tokens)
                         .contains(blocks);
      if (!is_seen && !is_seen_before) continue;
      std::optional<kv::LeasedPage> page = lease(nodes[blocks], hashes[blocks], group);
      is_whole = page.has_value() || !is_seen;
      if (page) pages.push_back(*std::move(page));
    }
    if (!is_whole) break;
  }
  // Behind an earlier end, windows would need other pages.
  const bool is_of_use = blocks == nodes.size() || !has_windows;
  if (!is_of_use) {
    for (const kv::LeasedPage& page : pages) end(std::span(&page.block, 1));
    pages.clear();
    blocks = 0;
  }
  options_.lessee->take(std::move(pages), std::move(prompt));
  return blocks;
}

void PageLeases::end(std::span<const kv::BlockId> blocks) {
  for (const kv::BlockId block : blocks) {
    const auto pinned = leased_.find(block);
    ASSERT(pinned != leased_.end(), "a lease ends once");
    cache_.unpin_page(block);
    if (--pinned->second.leases == 0) leased_.erase(pinned);
  }
}

void PageLeases::poll(bool stands_still_for_room) {
  if (!stands_still_for_room || leased_.empty() || std::exchange(has_revoked_, true)) return;
  options_.lessee->revoke(std::nullopt);
}

void PageLeases::revoke(kv::OwnerId owner) {
  if (is_on() && options_.owner_tag) options_.lessee->revoke(options_.owner_tag(owner));
}

bool PageLeases::has_leased(kv::OwnerId owner) const {
  return std::any_of(leased_.begin(), leased_.end(),
                     [&](const auto& pinned) { return pinned.second.owner == owner; });
}

}  // namespace pagoda::engine
