// Why a match ends where it does: what left, what is there in another way, what is there instead.
#include <algorithm>
#include <array>
#include <utility>

#include "kv/block_identity.h"
#include "kv/cache.h"

namespace pagoda::kv {
namespace {

constexpr std::int64_t kUseUnitNs = 10'000'000;  // of used_: 32 bits are more than a year
constexpr int kVariantsMax = 8;                  // searches under other salts, or namespaces

// A block of a prompt that was there, or its beginning.
struct GoneBlock {
  std::uint64_t tokens = 0;
  std::uint64_t identity = 0;
  std::uint64_t key = 0;  // of its region
  Departure left;
};

std::optional<GoneBlock> whole_gone(const DepartureLog& log, std::uint64_t above,
                                    std::span<const std::uint64_t> keys,
                                    std::span<const TokenId> block) {
  for (const std::uint64_t key : keys) {
    const std::uint64_t identity = block_identity(above, key, block);
    const std::optional<Departure> left = log.find(identity);
    if (left) return GoneBlock{block.size(), identity, key, *left};
  }
  return std::nullopt;
}

// The longest beginning that is known to have left: all of an open leaf, or as much of a block as a
// prompt ended with.
std::optional<GoneBlock> part_gone(const DepartureLog& log, std::uint64_t above,
                                   std::span<const std::uint64_t> keys,
                                   std::span<const TokenId> block) {
  std::optional<GoneBlock> longest;
  for (const std::uint64_t key : keys) {
    std::uint64_t identity = block_identity(above, key, {});
    for (std::uint64_t tokens = 1; tokens <= block.size(); ++tokens) {
      identity = mix_identity(identity, block[tokens - 1].value());
      if (longest && tokens <= longest->tokens) continue;
      const std::optional<Departure> left = log.find(identity);
      if (left) longest = GoneBlock{tokens, identity, key, *left};
    }
  }
  return longest;
}

}  // namespace

Explanation Cache::explain(const Domain& domain, std::span<const TokenId> prompt,
                           const Match& match) const {
  const std::uint64_t reached = match.tokens;
  Explanation why = {.prompt_tokens = prompt.size(), .tokens_matched = reached};
  why.tokens_reachable = reached;
  if (prompt.size() < 2) {
    why.reason = MissReason::kTooShort;
    return why;
  }
  if (!options_.share) {
    why.reason = MissReason::kSharingOff;
    return why;
  }
  if (reached == prompt.size() - 1) return why;

  const Asker asker = {domain.root(), domain.salt(), domain.public_tokens};
  const Trail trail = follow(asker, prompt);
  const Gone gone = gone_from(asker, trail, prompt);
  if (gone.tokens > reached) {
    const auto first = trail.tokens > reached ? last_departure(trail) : gone.first;
    why.tokens_reachable = gone.tokens;
    why.reason = MissReason::kEvicted;
    if (first) {
      const std::uint32_t account = account_of(domain.salt(), domain.owner());
      const bool is_reset = first->cause == EvictionCause::kReset;
      if (is_reset) why.reason = MissReason::kCleared;
      why.eviction = {.cause = first->cause,
                      .left_ns = first->left_ns,
                      .idle_ns = first->idle * kUseUnitNs,
                      .for_others = !is_reset && first->account != account};
    }
  }
  look_elsewhere(domain, prompt, why);
  if (why.reason != MissReason::kNone) return why;
  why.stored = stored_after(asker, trail, prompt);
  why.reason = why.stored.empty() ? MissReason::kNeverSeen : MissReason::kDiffers;
  if (departures_) why.forgotten_until_ns = departures_->forgotten_until_ns();
  return why;
}

Cache::Trail Cache::follow(const Asker& asker, std::span<const TokenId> prompt) const {
  const std::uint64_t block_tokens = options_.block_tokens;
  Trail trail = {.end = asker.root, .nodes = {}};
  SearchWork work;
  for (std::uint64_t done = 0; done + 1 < prompt.size(); done += block_tokens) {
    const auto next = prompt.subspan(done, std::min(block_tokens, prompt.size() - 1 - done));
    const auto found =
        child_to_follow(asker, trail.end, next, asker.is_public(done + block_tokens), work);
    if (!found) break;
    trail.nodes.push_back(found->node);
    trail.tokens = done + found->tokens_shared;
    if (found->tokens_shared < block_tokens) break;
    trail.end = found->node;
  }
  return trail;
}

// From the trail's last whole block on: whole blocks that left, one after the other, and of the
// next one what is known.
Cache::Gone Cache::gone_from(const Asker& asker, const Trail& trail,
                             std::span<const TokenId> prompt) const {
  Gone gone = {.tokens = trail.tokens, .first = std::nullopt};
  if (!departures_) return gone;
  const auto note = [&](std::uint64_t tokens, const Departure& left) {
    if (tokens <= gone.tokens) return;
    gone.tokens = std::min<std::uint64_t>(tokens, prompt.size() - 1);
    if (!gone.first) gone.first = left;
  };
  const std::uint64_t block_tokens = options_.block_tokens;
  const std::uint64_t own_key = salts_.key(asker.salt);
  std::uint64_t above = identity_of(trail.end);
  bool is_private = tree_.region(trail.end) != kPublic;
  for (std::uint64_t done = trail.tokens / block_tokens * block_tokens; done < prompt.size();
       done += block_tokens) {
    const auto next = prompt.subspan(done, std::min(block_tokens, prompt.size() - done));
    // The region that the block belongs to, then the other one that the asker may see.
    std::array<std::uint64_t, 2> keys = {own_key, kPublicKey};
    if (!is_private && asker.is_public(done + block_tokens)) std::swap(keys[0], keys[1]);
    const auto visible = std::span(keys).first(is_private || asker.salt == kPublic ? 1 : 2);
    std::optional<GoneBlock> block;
    if (next.size() == block_tokens) block = whole_gone(*departures_, above, visible, next);
    if (!block) {
      block = part_gone(*departures_, above, visible, next);
      if (block) note(done + block->tokens, block->left);
      break;
    }
    note(done + block_tokens, block->left);
    above = block->identity;
    is_private = is_private || block->key != kPublicKey;
  }
  return gone;
}

// Nodes that are there without some of their pages: when the last of those left.
std::optional<Departure> Cache::last_departure(const Trail& trail) const {
  std::optional<Departure> last;
  for (const NodeId node : trail.nodes) {
    if (!departures_ || tree_.pages(node) == slices() || !tree_.is_whole(node)) continue;
    const auto left = departures_->find(identity_of(node));
    if (left && (!last || left->left_ns > last->left_ns)) last = left;
  }
  return last;
}

// The same tokens in another namespace, or under another salt of the same owner.
void Cache::look_elsewhere(const Domain& domain, std::span<const TokenId> prompt,
                           Explanation& why) const {
  const auto try_as = [&](const Asker& asker, MissReason reason) {
    const Match there = match_as(asker, prompt);
    if (there.tokens <= why.tokens_reachable) return;
    why.tokens_reachable = there.tokens;
    why.reason = reason;
    why.eviction.reset();
  };
  if (spaces_.size() > 1) {
    const auto here = std::find_if(spaces_.begin(), spaces_.end(), [&](const auto& space) {
      return space.second == domain.root();
    });
    int tried = 0;
    for (const auto& [name, root] : spaces_) {
      if (tried == kVariantsMax) break;
      if (root == domain.root()) continue;
      ++tried;
      const bool same_space = name.first == here->first.first;
      try_as({root, domain.salt(), domain.public_tokens},
             same_space ? MissReason::kOtherAdapter : MissReason::kOtherFormat);
    }
  }
  int tried = 0;
  salts_.for_each_of(domain.owner(), [&](SaltId salt) {
    if (salt != domain.salt()) {
      try_as({domain.root(), salt, domain.public_tokens}, MissReason::kOtherSalt);
    }
    return ++tried < kVariantsMax;
  });
}

// How the cache goes on after what it shares with the prompt, where that is something.
std::vector<TokenId> Cache::stored_after(const Asker& asker, const Trail& trail,
                                         std::span<const TokenId> prompt) const {
  std::vector<TokenId> stored;
  if (trail.tokens == 0) return stored;
  const auto shared = static_cast<std::uint32_t>(trail.tokens % options_.block_tokens);
  const auto next = prompt.subspan(trail.tokens - shared);
  SearchWork work;
  const auto goes_on = [&](SaltId region) -> std::optional<NodeId> {
    const auto found = tree_.closest_child(trail.end, region, next, work);
    const bool differs =
        found && found->tokens_shared == shared && tree_.tokens(found->node).size() > shared;
    return differs ? std::optional(found->node) : std::nullopt;
  };
  const SaltId region = tree_.region(trail.end);
  std::optional<NodeId> node = goes_on(region);
  if (!node && region == kPublic && asker.salt != kPublic) node = goes_on(asker.salt);
  std::uint32_t first = shared;
  while (node && stored.size() < Explanation::kStoredTokensMax) {
    const auto tokens = tree_.tokens(*node).subspan(first);
    const auto room = Explanation::kStoredTokensMax - stored.size();
    const auto part = tokens.first(std::min(tokens.size(), room));
    stored.insert(stored.end(), part.begin(), part.end());
    const auto below = tree_.closest_child(*node, tree_.region(*node), {}, work);
    node = below ? std::optional(below->node) : std::nullopt;
    first = 0;
  }
  return stored;
}

// Whom room is made for: an owner, or else a salt.
std::uint32_t Cache::account_of(SaltId salt, OwnerId owner) const {
  if (owner == kNoOwner) return static_cast<std::uint32_t>(salts_.key(salt));
  return static_cast<std::uint32_t>(mix_identity(options_.hash_seed, owner.value()));
}

// Of a root, or of a whole block.
std::uint64_t Cache::identity_of(NodeId node) const {
  return tree_.is_root(node) ? root_identity(options_.hash_seed, node) : identities_[node.value()];
}

std::uint64_t Cache::identity_below(NodeId parent, SaltId region,
                                    std::span<const TokenId> tokens) const {
  return block_identity(identity_of(parent), salts_.key(region), tokens);
}

void Cache::note_used(BlockId block) {
  if (!departures_) return;
  used_[block.value()] = static_cast<std::uint32_t>(time_ns_ / kUseUnitNs);
}

// The sequence's block is the node's: does its prompt end in it?
void Cache::note_prompt_end(const Sequence& sequence, NodeId node, std::uint64_t block) {
  const std::uint64_t begin = block * options_.block_tokens;
  const std::uint64_t end = sequence.prompt_tokens_;
  if (end <= begin || end > sequence.tokens_computed()) return;
  tree_.set_prompt_end(node, static_cast<std::uint32_t>(end - begin));
}

// A page of the node goes. Constant time: what it takes to name a block.
void Cache::note_departure(NodeId node, BlockId block, const Occasion& occasion) {
  if (!departures_) return;
  const auto now = static_cast<std::uint32_t>(time_ns_ / kUseUnitNs);
  Departure left = {
      .left_ns = time_ns_, .idle = now - used_[block.value()], .account = occasion.account};
  left.cause = cause_of(node, occasion);
  const NodeId parent = tree_.parent(node);
  const SaltId region = tree_.region(node);
  const auto tokens = tree_.tokens(node);
  departures_->add(
      tree_.is_whole(node) ? identity_of(node) : identity_below(parent, region, tokens), left);
  const std::uint32_t end = tree_.prompt_end(node);
  if (end > 0 && end < tokens.size()) {
    departures_->add(identity_below(parent, region, tokens.first(end)), left);
  }
}

}  // namespace pagoda::kv
