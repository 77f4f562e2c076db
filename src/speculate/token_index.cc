#include "speculate/token_index.h"

#include <algorithm>
#include <bit>

#include "base/assert.h"

namespace pagoda::speculate {
namespace {

constexpr std::size_t kChainsMin = 256;
constexpr std::size_t kChainsMax = std::size_t{1} << 15;

}  // namespace

TokenIndex::TokenIndex(std::uint32_t gram, std::size_t tokens_expected)
    : gram_(gram),
      heads_(std::bit_ceil(std::clamp(tokens_expected, kChainsMin, kChainsMax)), kNone) {
  ASSERT(gram > 0, "a gram has tokens");
  before_.reserve(tokens_expected);
}

void TokenIndex::clear() {
  std::fill(heads_.begin(), heads_.end(), kNone);
  before_.clear();
}

void TokenIndex::catch_up(std::span<const TokenId> text, std::size_t positions_max) {
  for (std::size_t added = 0; added < positions_max && before_.size() < text.size(); ++added) {
    const std::size_t end = before_.size();
    std::uint32_t older = kNone;
    if (end >= gram_) {
      std::uint32_t& head = heads_[chain_of(text.subspan(end - gram_, gram_))];
      older = head;
      head = static_cast<std::uint32_t>(end);
    }
    before_.push_back(older);
  }
}

std::size_t TokenIndex::chain_of(std::span<const TokenId> gram) const {
  std::uint64_t hash = 0;
  for (const TokenId token : gram) hash = (hash ^ token.value()) * 0x9E3779B97F4A7C15u;
  return (hash >> 32) & (heads_.size() - 1);
}

std::size_t TokenIndex::shared_end(std::span<const TokenId> a, std::span<const TokenId> b,
                                   std::size_t most) {
  const std::size_t limit = std::min({a.size(), b.size(), most});
  std::size_t shared = 0;
  while (shared < limit && a[a.size() - 1 - shared] == b[b.size() - 1 - shared]) ++shared;
  return shared;
}

}  // namespace pagoda::speculate
