#include "kv/explain/explainer.h"

#include <algorithm>
#include <array>
#include <utility>

#include "kv/block_identity.h"

namespace pagoda::kv {
namespace {

constexpr int kVariantsMax = 8;  // searches under other salts, or in other namespaces

// A block of a prompt that was there, or its beginning.
struct EvictedBlock {
  std::uint64_t tokens = 0;
  std::uint64_t identity = 0;
  std::uint64_t key = 0;  // of its region
  EvictionRecord record;
};

std::optional<EvictedBlock> find_whole(const EvictionLog& log, std::uint64_t above,
                                       std::span<const std::uint64_t> keys,
                                       std::span<const TokenId> block) {
  for (const std::uint64_t key : keys) {
    const std::uint64_t identity = block_identity(above, key, block);
    const std::optional<EvictionRecord> record = log.find(identity);
    if (record) return EvictedBlock{block.size(), identity, key, *record};
  }
  return std::nullopt;
}

// Finds the longest beginning that is known to have left: all of a partial block, or as much of a
// block as a prompt ended with.
std::optional<EvictedBlock> find_part(const EvictionLog& log, std::uint64_t above,
                                      std::span<const std::uint64_t> keys,
                                      std::span<const TokenId> block) {
  std::optional<EvictedBlock> longest;
  for (const std::uint64_t key : keys) {
    std::uint64_t identity = block_identity(above, key, {});
    for (std::uint64_t tokens = 1; tokens <= block.size(); ++tokens) {
      identity = mix_identity(identity, block[tokens - 1].value());
      if (longest && tokens <= longest->tokens) continue;
      const std::optional<EvictionRecord> record = log.find(identity);
      if (record) longest = EvictedBlock{tokens, identity, key, *record};
    }
  }
  return longest;
}

}  // namespace

Explanation Explainer::explain(const CacheScope& scope, std::span<const TokenId> asked,
                               const Match& match) const {
  const std::uint64_t reached = match.tokens;
  // Tokens that may not be found are explained by that alone.
  const LookupScope lookup = scope.lookup();
  const auto prompt =
      asked.first(std::min<std::uint64_t>(asked.size(), lookup.findable(asked).size() + 1));
  Explanation why = {.prompt_tokens = asked.size(), .tokens_matched = reached};
  why.tokens_reachable = reached;
  if (asked.size() < 2) {
    why.reason = MissReason::kTooShort;
    return why;
  }
  if (!in_.share) {
    why.reason = MissReason::kSharingOff;
    return why;
  }
  if (reached + 1 == prompt.size()) {
    if (prompt.size() < asked.size()) why.reason = MissReason::kObserved;
    return why;
  }

  const PrefixPath path = in_.lookup.path(lookup, prompt);
  const EvictedMatch evicted = evicted_match(lookup, path, prompt);
  if (evicted.tokens > reached) {
    const auto first = path.tokens > reached ? last_eviction(path) : evicted.first;
    why.tokens_reachable = evicted.tokens;
    why.reason = MissReason::kEvicted;
    if (first) {
      const std::uint32_t tenant = in_.salts.tenant_key(scope.salt(), scope.owner());
      const bool is_reset = first->cause == EvictionCause::kReset;
      if (is_reset) why.reason = MissReason::kCleared;
      why.eviction = {.cause = first->cause,
                      .left_ns = first->left_ns,
                      .idle_ns = first->idle * EvictionHistory::kIdleUnitNs,
                      .for_others = !is_reset && first->account != tenant};
    }
  }
  search_other_scopes(scope, prompt, why);
  if (why.reason != MissReason::kNone) return why;
  why.stored = stored_after(lookup, path, prompt);
  why.reason = why.stored.empty() ? MissReason::kNeverSeen : MissReason::kDiffers;
  if (const EvictionLog* const log = in_.history.log()) {
    why.forgotten_until_ns = log->forgotten_until_ns();
  }
  return why;
}

// From the path's last whole block on, follows whole blocks that left, one after the other, and
// then as much of the next block as is known to have left.
Explainer::EvictedMatch Explainer::evicted_match(const LookupScope& scope, const PrefixPath& path,
                                                 std::span<const TokenId> prompt) const {
  EvictedMatch evicted = {.tokens = path.tokens, .first = std::nullopt};
  const EvictionLog* const log = in_.history.log();
  if (log == nullptr) return evicted;
  const auto note = [&](std::uint64_t tokens, const EvictionRecord& record) {
    if (tokens <= evicted.tokens) return;
    evicted.tokens = std::min<std::uint64_t>(tokens, prompt.size() - 1);
    if (!evicted.first) evicted.first = record;
  };
  const std::uint64_t block_tokens = in_.tree.block_tokens();
  const std::uint64_t own_key = in_.salts.key(scope.salt);
  std::uint64_t above = in_.identities.of(path.end);
  bool is_private = in_.tree.region(path.end) != kPublic;
  for (std::uint64_t done = path.tokens / block_tokens * block_tokens; done < prompt.size();
       done += block_tokens) {
    const auto next = prompt.subspan(done, std::min(block_tokens, prompt.size() - done));
    // The region that the block belongs to comes first, then the other one that the scope may see.
    std::array<std::uint64_t, 2> keys = {own_key, kPublicKey};
    if (!is_private && scope.is_public(done + block_tokens)) std::swap(keys[0], keys[1]);
    const auto visible = std::span(keys).first(is_private || scope.salt == kPublic ? 1 : 2);
    std::optional<EvictedBlock> block;
    if (next.size() == block_tokens) block = find_whole(*log, above, visible, next);
    if (!block) {
      block = find_part(*log, above, visible, next);
      if (block) note(done + block->tokens, block->record);
      break;
    }
    note(done + block_tokens, block->record);
    above = block->identity;
    is_private = is_private || block->key != kPublicKey;
  }
  return evicted;
}

// Returns when the latest page left of the path's whole nodes that lack some of their pages.
std::optional<EvictionRecord> Explainer::last_eviction(const PrefixPath& path) const {
  std::optional<EvictionRecord> last;
  const EvictionLog* const log = in_.history.log();
  if (log == nullptr) return last;
  for (const NodeId node : path.nodes) {
    if (in_.tree.pages(node) == in_.tree.groups() || !in_.tree.is_whole(node)) continue;
    const auto record = log->find(in_.identities.of(node));
    if (record && (!last || record->left_ns > last->left_ns)) last = record;
  }
  return last;
}

// Looks for the same tokens in other namespaces, and under other salts of the same owner.
void Explainer::search_other_scopes(const CacheScope& scope, std::span<const TokenId> prompt,
                                    Explanation& why) const {
  // True: it is why no more was found.
  const auto try_scope = [&](const LookupScope& other, MissReason reason) {
    const Match there = in_.lookup.match(other, prompt);
    if (there.tokens <= why.tokens_reachable) return false;
    why.tokens_reachable = there.tokens;
    why.reason = reason;
    why.eviction.reset();
    return true;
  };
  const Namespaces& namespaces = in_.namespaces;
  if (namespaces.size() > 1) {
    const auto* found = &*namespaces.begin();
    bool is_elsewhere = false;
    int tried = 0;
    for (const auto& entry : namespaces) {
      if (tried == kVariantsMax) break;
      const auto& space = entry.second;
      if (space.root == scope.root()) continue;
      ++tried;
      if (!try_scope({space.root, scope.salt(), scope.public_tokens, space.groups},
                     MissReason::kOtherFormat)) {
        continue;
      }
      is_elsewhere = true;
      found = &entry;
    }
    // There may be a namespace for every policy that a client named: its own is looked for where it
    // matters.
    if (is_elsewhere) {
      const auto here = std::find_if(namespaces.begin(), namespaces.end(), [&](const auto& entry) {
        return entry.second.root == scope.root();
      });
      why.reason = found->first.space != here->first.space     ? MissReason::kOtherFormat
                   : found->first.policy != here->first.policy ? MissReason::kOtherPolicy
                                                               : MissReason::kOtherAdapter;
    }
  }
  int tried = 0;
  in_.salts.for_each_of(scope.owner(), [&](SaltId salt) {
    if (salt != scope.salt()) {
      try_scope({scope.root(), salt, scope.public_tokens, scope.groups()}, MissReason::kOtherSalt);
    }
    return ++tried < kVariantsMax;
  });
}

// How the cache goes on after the tokens that it shares with the prompt; nothing where it shares
// none.
std::vector<TokenId> Explainer::stored_after(const LookupScope& scope, const PrefixPath& path,
                                             std::span<const TokenId> prompt) const {
  std::vector<TokenId> stored;
  if (path.tokens == 0) return stored;
  const PrefixTree& tree = in_.tree;
  const auto shared = static_cast<std::uint32_t>(path.tokens % tree.block_tokens());
  const auto next = prompt.subspan(path.tokens - shared);
  SearchWork work;
  const auto goes_on = [&](SaltId region) -> std::optional<NodeId> {
    const auto found = tree.closest_child(path.end, region, next, work);
    const bool differs =
        found && found->tokens_shared == shared && tree.tokens(found->node).size() > shared;
    return differs ? std::optional(found->node) : std::nullopt;
  };
  const SaltId region = tree.region(path.end);
  std::optional<NodeId> node = goes_on(region);
  if (!node && region == kPublic && scope.salt != kPublic) node = goes_on(scope.salt);
  std::uint32_t first = shared;
  while (node && stored.size() < Explanation::kStoredTokensMax) {
    const auto tokens = tree.tokens(*node).subspan(first);
    const auto room = Explanation::kStoredTokensMax - stored.size();
    const auto part = tokens.first(std::min(tokens.size(), room));
    stored.insert(stored.end(), part.begin(), part.end());
    const auto below = tree.closest_child(*node, tree.region(*node), {}, work);
    node = below ? std::optional(below->node) : std::nullopt;
    first = 0;
  }
  return stored;
}

}  // namespace pagoda::kv
