#include "sim/toy_model.h"

namespace pagoda::sim {

std::vector<TokenId> ToyModel::generate_single(std::span<const TokenId> prompt,
                                               std::uint64_t sample, std::uint64_t tokens_max,
                                               const kv::memory::AttentionSpec& policy) const {
  std::vector<TokenId> tokens(prompt.begin(), prompt.end());
  std::vector<Digest> digests;
  while (tokens.size() < tokens_max) {
    while (digests.size() < tokens.size()) {
      const Digest before = digests.empty() ? start(policy) : digests.back();
      digests.push_back(row(before, tokens[digests.size()]));
    }
    const Digest seen =
        look(tokens.size() - 1, policy, [&](std::uint32_t, std::uint64_t p) { return digests[p]; });
    tokens.push_back(choose(seen, sample));
    if (tokens.back() == kEnd) break;
  }
  return {tokens.begin() + static_cast<std::ptrdiff_t>(prompt.size()), tokens.end()};
}

}  // namespace pagoda::sim
