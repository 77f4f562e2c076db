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
struct EvictedBlock {
  std::uint64_t tokens = 0;
  std::uint64_t identity = 0;
  std::uint64_t key = 0;  // of its region
  EvictionRecord left;
};

std::optional<EvictedBlock> find_whole(const EvictionLog& log, std::uint64_t above,
                                       std::span<const std::uint64_t> keys,
                                       std::span<const TokenId> block) {
  for (const std::uint64_t key : keys) {
    const std::uint64_t identity = block_identity(above, key, block);
    const std::optional<EvictionRecord> left = log.find(identity);
    if (left) return EvictedBlock{block.size(), identity, key, *left};
  }
  return std::nullopt;
}

// The longest beginning that is known to have left: all of a partial block, or as much of a block
// as a prompt ended with.
std::optional<EvictedBlock> find_part(const EvictionLog& log, std::uint64_t above,
                                      std::span<const std::uint64_t> keys,
                                      std::span<const TokenId> block) {
  std::optional<EvictedBlock> longest;
  for (const std::uint64_t key : keys) {
    std::uint64_t identity = block_identity(above, key, {});
    for (std::uint64_t tokens = 1; tokens <= block.size(); ++tokens) {
      identity = mix_identity(identity, block[tokens - 1].value());
      if (longest && tokens <= longest->tokens) continue;
      const std::optional<EvictionRecord> left = log.find(identity);
      if (left) longest = EvictedBlock{tokens, identity, key, *left};
    }
  }
  return longest;
}

}  // namespace

Explanation Cache::explain(const CacheScope& scope, std::span<const TokenId> prompt,
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

  const LookupScope lookup = {scope.root(), scope.salt(), scope.public_tokens};
  const PrefixPath path = follow(lookup, prompt);
  const EvictedMatch evicted = evicted_match(lookup, path, prompt);
  if (evicted.tokens > reached) {
    const auto first = path.tokens > reached ? last_eviction(path) : evicted.first;
    why.tokens_reachable = evicted.tokens;
    why.reason = MissReason::kEvicted;
    if (first) {
      const std::uint32_t account = account_of(scope.salt(), scope.owner());
      const bool is_reset = first->cause == EvictionCause::kReset;
      if (is_reset) why.reason = MissReason::kCleared;
      why.eviction = {.cause = first->cause,
                      .left_ns = first->left_ns,
                      .idle_ns = first->idle * kUseUnitNs,
                      .for_others = !is_reset && first->account != account};
    }
  }
  search_other_scopes(scope, prompt, why);
  if (why.reason != MissReason::kNone) return why;
  why.stored = stored_after(lookup, path, prompt);
  why.reason = why.stored.empty() ? MissReason::kNeverSeen : MissReason::kDiffers;
  if (eviction_log_) why.forgotten_until_ns = eviction_log_->forgotten_until_ns();
  return why;
}

Cache::PrefixPath Cache::follow(const LookupScope& lookup, std::span<const TokenId> prompt) const {
  const std::uint64_t block_tokens = options_.block_tokens;
  PrefixPath path = {.end = lookup.root, .nodes = {}};
  SearchWork work;
  for (std::uint64_t done = 0; done + 1 < prompt.size(); done += block_tokens) {
    const auto next = prompt.subspan(done, std::min(block_tokens, prompt.size() - 1 - done));
    const auto found =
        child_to_follow(lookup, path.end, next, lookup.is_public(done + block_tokens), work);
    if (!found) break;
    path.nodes.push_back(found->node);
    path.tokens = done + found->tokens_shared;
    if (found->tokens_shared < block_tokens) break;
    path.end = found->node;
  }
  return path;
}

// From the path's last whole block on: whole blocks that left, one after the other, and of the
// next one what is known.
Cache::EvictedMatch Cache::evicted_match(const LookupScope& lookup, const PrefixPath& path,
                                         std::span<const TokenId> prompt) const {
  EvictedMatch evicted = {.tokens = path.tokens, .first = std::nullopt};
  if (!eviction_log_) return evicted;
  const auto note = [&](std::uint64_t tokens, const EvictionRecord& left) {
    if (tokens <= evicted.tokens) return;
    evicted.tokens = std::min<std::uint64_t>(tokens, prompt.size() - 1);
    if (!evicted.first) evicted.first = left;
  };
  const std::uint64_t block_tokens = options_.block_tokens;
  const std::uint64_t own_key = salts_.key(lookup.salt);
  std::uint64_t above = identity_of(path.end);
  bool is_private = tree_.region(path.end) != kPublic;
  for (std::uint64_t done = path.tokens / block_tokens * block_tokens; done < prompt.size();
       done += block_tokens) {
    const auto next = prompt.subspan(done, std::min(block_tokens, prompt.size() - done));
    // The region that the block belongs to, then the other one that the lookup may see.
    std::array<std::uint64_t, 2> keys = {own_key, kPublicKey};
    if (!is_private && lookup.is_public(done + block_tokens)) std::swap(keys[0], keys[1]);
    const auto visible = std::span(keys).first(is_private || lookup.salt == kPublic ? 1 : 2);
    std::optional<EvictedBlock> block;
    if (next.size() == block_tokens) block = find_whole(*eviction_log_, above, visible, next);
    if (!block) {
      block = find_part(*eviction_log_, above, visible, next);
      if (block) note(done + block->tokens, block->left);
      break;
    }
    note(done + block_tokens, block->left);
    above = block->identity;
    is_private = is_private || block->key != kPublicKey;
  }
  return evicted;
}

// Nodes that are there without some of their pages: when the last of those left.
std::optional<EvictionRecord> Cache::last_eviction(const PrefixPath& path) const {
  std::optional<EvictionRecord> last;
  for (const NodeId node : path.nodes) {
    if (!eviction_log_ || tree_.pages(node) == groups() || !tree_.is_whole(node)) continue;
    const auto left = eviction_log_->find(identity_of(node));
    if (left && (!last || left->left_ns > last->left_ns)) last = left;
  }
  return last;
}

// The same tokens in another namespace, or under another salt of the same owner.
void Cache::search_other_scopes(const CacheScope& scope, std::span<const TokenId> prompt,
                                Explanation& why) const {
  const auto try_as = [&](const LookupScope& lookup, MissReason reason) {
    const Match there = match_as(lookup, prompt);
    if (there.tokens <= why.tokens_reachable) return;
    why.tokens_reachable = there.tokens;
    why.reason = reason;
    why.eviction.reset();
  };
  if (spaces_.size() > 1) {
    const auto here = std::find_if(spaces_.begin(), spaces_.end(),
                                   [&](const auto& space) { return space.second == scope.root(); });
    int tried = 0;
    for (const auto& [name, root] : spaces_) {
      if (tried == kVariantsMax) break;
      if (root == scope.root()) continue;
      ++tried;
      const bool same_space = name.first == here->first.first;
      try_as({root, scope.salt(), scope.public_tokens},
             same_space ? MissReason::kOtherAdapter : MissReason::kOtherFormat);
    }
  }
  int tried = 0;
  salts_.for_each_of(scope.owner(), [&](SaltId salt) {
    if (salt != scope.salt()) {
      try_as({scope.root(), salt, scope.public_tokens}, MissReason::kOtherSalt);
    }
    return ++tried < kVariantsMax;
  });
}

// How the cache goes on after what it shares with the prompt, where that is something.
std::vector<TokenId> Cache::stored_after(const LookupScope& lookup, const PrefixPath& path,
                                         std::span<const TokenId> prompt) const {
  std::vector<TokenId> stored;
  if (path.tokens == 0) return stored;
  const auto shared = static_cast<std::uint32_t>(path.tokens % options_.block_tokens);
  const auto next = prompt.subspan(path.tokens - shared);
  SearchWork work;
  const auto goes_on = [&](SaltId region) -> std::optional<NodeId> {
    const auto found = tree_.closest_child(path.end, region, next, work);
    const bool differs =
        found && found->tokens_shared == shared && tree_.tokens(found->node).size() > shared;
    return differs ? std::optional(found->node) : std::nullopt;
  };
  const SaltId region = tree_.region(path.end);
  std::optional<NodeId> node = goes_on(region);
  if (!node && region == kPublic && lookup.salt != kPublic) node = goes_on(lookup.salt);
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
  if (!eviction_log_) return;
  used_[block.value()] = static_cast<std::uint32_t>(time_ns_ / kUseUnitNs);
}

// The sequence's block is the node's: does its prompt end in it?
void Cache::note_prompt_end(const Sequence& sequence, NodeId node, std::uint64_t block) {
  const std::uint64_t begin = block * options_.block_tokens;
  const std::uint64_t end = sequence.prompt_tokens_;
  if (end <= begin || end > sequence.tokens_computed()) return;
  tree_.set_prompt_end(node, static_cast<std::uint32_t>(end - begin));
}

// A page of the node goes. Constant time: what it takes to identify a block.
void Cache::log_eviction(NodeId node, BlockId block, const EvictionTrigger& trigger) {
  if (!eviction_log_) return;
  const auto now = static_cast<std::uint32_t>(time_ns_ / kUseUnitNs);
  EvictionRecord left = {
      .left_ns = time_ns_, .idle = now - used_[block.value()], .account = trigger.account};
  left.cause = cause_of(node, trigger);
  const NodeId parent = tree_.parent(node);
  const SaltId region = tree_.region(node);
  const auto tokens = tree_.tokens(node);
  eviction_log_->add(
      tree_.is_whole(node) ? identity_of(node) : identity_below(parent, region, tokens), left);
  const std::uint32_t end = tree_.prompt_end(node);
  if (end > 0 && end < tokens.size()) {
    eviction_log_->add(identity_below(parent, region, tokens.first(end)), left);
  }
}

}  // namespace pagoda::kv
