// What must be true after every operation.
#include <utility>

#include "kv/simulation.h"

namespace pagoda::kv {

Match Simulation::find(const CacheOracle::LookupScope& client, const CacheScope& scope,
                       const std::vector<TokenId>& prompt) {
  const bool swapped = options_.sabotage == Sabotage::kForeignRegion;
  Match match = swapped ? cache_.match(scope_of(client.space, 1 + client.tenant % 3), prompt)
                        : cache_.match(scope, prompt);
  const std::uint64_t longest = options_.share ? oracle_.longest(client, prompt) : 0;
  if (match.tokens > longest) {
    fail("matched " + text(match.tokens) + " of the " + text(longest) +
         " tokens that the client may see");
  }
  if (options_.exact && match.tokens < longest) {
    fail("matched " + text(match.tokens) + " where " + text(longest) + " are cached");
  }
  if (swapped) match = cache_.match(scope, prompt);  // it was not noticed this time
  verify_explanation(scope, prompt, match);
  if (options_.hash_blocks) verify_hashes(client, prompt, match.nodes);
  return match;
}

void Simulation::verify_explanation(const CacheScope& scope, std::span<const TokenId> prompt,
                                    const Match& match) {
  const Explanation why = cache_.explain(scope, prompt, match);
  if (why.tokens_matched != match.tokens) fail("explained another match");
  if (why.tokens_reachable < why.stops_at() || why.tokens_reachable >= prompt.size()) {
    fail("explained a reach of " + text(why.tokens_reachable));
  }
  const bool can_be_longer = options_.share && why.stops_at() + 1 < prompt.size();
  const bool says_why = why.reason != MissReason::kNone && why.reason != MissReason::kTooShort &&
                        why.reason != MissReason::kSharingOff;
  if (says_why != can_be_longer) fail("no reason, or one for nothing");
  const bool left = why.reason == MissReason::kEvicted || why.reason == MissReason::kCleared;
  if (why.eviction && !left) fail("what is there did not leave");
  if (options_.exact && left) fail("nothing left");
}

// Block by block from the root's name; the salt enters where the first private block is.
void Simulation::verify_hashes(const CacheOracle::LookupScope& client,
                               std::span<const TokenId> prompt, std::span<const NodeId> nodes) {
  BlockHash parent = root_hash();
  SaltId above = kPublic;
  for (std::size_t block = 0; block < nodes.size(); ++block) {
    const SaltId region = cache_.tree().region(nodes[block]);
    const std::string salt = region != above ? salt_of(client.tenant) : "";
    const auto tokens = prompt.subspan(block * options_.block_tokens, options_.block_tokens);
    parent = hasher_.hash(parent, tokens, {adapter_of(client.space), salt}).value();
    if (cache_.hashes().of(nodes[block]) != parent)
      return fail("block " + text(block) + " is misnamed");
    above = region;
    ++report_.hashes_verified;
  }
}

// Running out is told beforehand, and nothing was evicted for it.
void Simulation::expect_refusal(const OutOfBlocks& shortage, const Asked& asked) {
  ++report_.refusals;
  if (options_.exact) return fail("the pool is too small for an exact run");
  if (shortage.blocks_needed <= shortage.blocks_available) fail("refused what there is room for");
  if (asked.needed != 0 && shortage.blocks_needed != asked.needed) fail("asked for other blocks");
  if (shortage.blocks_available != asked.available) fail("told of other blocks");
  if (cache_.blocks_available() != asked.available) fail("a refusal took blocks");
  if (cache_.stats().blocks_evicted != asked.evicted) fail("evicted for nothing");
}

void Simulation::expect_granted(const Asked& asked) {
  if (asked.needed > asked.available) fail("granted more than there is");
  if (cache_.blocks_available() + asked.needed != asked.available) {
    fail("took " + text(asked.available - cache_.blocks_available()) + " blocks, not " +
         text(asked.needed));
  }
}

// Two blocks that hold the same tokens must hold the same rows.
void Simulation::compare(BlockId mine, BlockId existing) {
  for (std::uint32_t t = 0; t < options_.block_tokens; ++t) {
    if (row(mine, t) != row(existing, t)) fail("a duplicate block differs from its twin");
  }
}

void Simulation::verify() {
  if (report_.failure) return;
  cache_.check();
  if (options_.live_curve && step_ % 8 == 0) verify_curve();
  if (ring_) follow_events();
  for (const Request& request : requests_) {
    if (request.sequence.tokens_computed() != request.tokens.size()) {
      return fail("a sequence lost count of its tokens");
    }
    for (std::uint32_t group = 0; group < options_.groups.size(); ++group) {
      verify_rows(request, group);
    }
  }
}

// Rates are rates, and under lru more memory never finds less.
void Simulation::verify_curve() {
  const CurveStats stats = cache_.curve().stats();
  if (stats.blocks_asked != (options_.share ? report_.blocks_asked : 0)) {
    fail("the curve counted " + text(stats.blocks_asked) + " blocks asked for, not " +
         text(report_.blocks_asked));
  }
  double before = 0;
  for (const CurvePoint& point : stats.lru) {
    if (point.hit_rate < before || point.hit_rate > 1) fail("the curve falls");
    before = point.hit_rate;
  }
  for (const PolicyRates& rates : stats.by_policy()) {
    for (const std::optional<double>& rate : {rates.half, rates.same, rates.twice}) {
      if (rate && !(*rate >= 0 && *rate <= 1)) fail("a rate that is none");
    }
  }
}

void Simulation::verify_rows(const Request& request, std::uint32_t group) {
  const std::uint64_t tokens = request.tokens.size();
  const memory::AttentionSpec spec = spec_of(request, group);
  const std::uint64_t tail = tokens / options_.block_tokens * options_.block_tokens;
  for (std::uint64_t p = 0; p < tokens; ++p) {
    // The next query's position is `tokens`.
    if (spec.window != 0 && p + spec.window <= tokens && p >= spec.sinks) continue;
    // While a copy is under way its source has the rows.
    BlockId block = request.sequence.table(group)[p / options_.block_tokens];
    if (p >= tail && !request.copies.empty()) block = request.copies[group].from;
    if (row(block, p % options_.block_tokens) != request.digests[p]) {
      return fail("row " + text(p) + " of group " + text(group) +
                  " is not what its tokens make it");
    }
  }
}

void Simulation::fail(const std::string& what) {
  if (!report_.failure) report_.failure = "step " + text(step_) + ": " + what + "\n" + history_;
}

}  // namespace pagoda::kv
