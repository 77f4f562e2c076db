#include "sim/sim_drafter.h"

#include <algorithm>

namespace pagoda::sim {

speculate::Proposal SimDrafter::propose(const speculate::DraftQuery& query,
                                        speculate::SequenceDrafting& /*drafting*/,
                                        std::span<TokenId> room) {
  if (dice_.one_in(5)) return {};
  const auto tokens = static_cast<std::uint32_t>(dice_.between(1, room.size()));
  for (std::uint32_t i = 0; i < tokens; ++i) room[i] = any_token();
  const auto known =
      std::find_if(sequences_.begin(), sequences_.end(), [&](const std::vector<TokenId>& sequence) {
        return sequence.size() > query.tokens.size() &&
               std::equal(query.tokens.begin(), query.tokens.end(), sequence.begin());
      });
  if (known != sequences_.end() && !dice_.one_in(4)) {  // right, as far as there is an output
    const auto rest = std::span(*known).subspan(query.tokens.size());
    std::copy_n(rest.begin(), std::min<std::size_t>(rest.size(), tokens), room.begin());
  }
  const auto somewhere = [&] { return dice_.between(0, tokens - 1); };
  if (dice_.one_in(3)) room[somewhere()] = any_token();
  if (dice_.one_in(8)) room[somewhere()] = TokenId(vocabulary_);
  if (dice_.one_in(8)) room[somewhere()] = TokenId(UINT32_MAX);
  if (dice_.one_in(8)) room[somewhere()] = ToyModel::kEnd;
  return {.tokens = tokens};
}

}  // namespace pagoda::sim
