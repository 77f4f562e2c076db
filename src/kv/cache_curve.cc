// What requests ask for and use, told to the live curve.
#include "kv/block_identity.h"
#include "kv/cache.h"

namespace pagoda::kv {
namespace {

constexpr std::int64_t kNsPerSecond = 1'000'000'000;

}  // namespace

// The whole blocks that could have been found: the last token of a prompt is always computed.
void Cache::note_asked(const Sequence& sequence, std::span<const TokenId> prompt) {
  if (prompt.empty()) return;
  const std::uint64_t blocks = (prompt.size() - 1) / options_.block_tokens;
  asked_.clear();
  for (const NodeId node : sequence.nodes_) asked_.push_back(identities_[node.value()]);
  if (asked_.size() < blocks) {
    SaltId region = region_of(sequence, asked_.size());
    std::uint64_t above =
        asked_.empty() ? root_identity(options_.hash_seed, sequence.root_) : asked_.back();
    for (std::uint64_t block = asked_.size(); block < blocks; ++block) {
      const auto tokens = prompt.subspan(block * options_.block_tokens, options_.block_tokens);
      // Below a private block all is private.
      if (region == kPublic) region = region_of(sequence, block);
      above = block_identity(above, salts_.key(region), tokens);
      asked_.push_back(above);
    }
  }
  curve_->opened(asked_, sequence.request_, time_ns_ / kNsPerSecond);
}

void Cache::note_closed(const Sequence& sequence) {
  curve_->closed(
      sequence.nodes_.size(),
      [&](std::uint64_t block) { return identities_[sequence.nodes_[block].value()]; },
      sequence.request_, time_ns_ / kNsPerSecond, sequence.tail_.empty());
}

CurveStats Cache::curve() const { return curve_ ? curve_->stats(*options_.policy) : CurveStats(); }

}  // namespace pagoda::kv
