#include "speculate/recorded_drafter.h"

#include <algorithm>
#include <utility>

#include "base/random.h"

namespace pagoda::speculate {

void RecordedDrafter::record(std::vector<TokenId> sequence) {
  sequences_[sequence.front()].push_back(std::move(sequence));
}

Proposal RecordedDrafter::propose(const DraftQuery& query, SequenceDrafting& /*drafting*/,
                                  std::span<TokenId> room) {
  const auto begins = [&](const std::vector<TokenId>& sequence) {
    return sequence.size() > query.tokens.size() &&
           std::equal(query.tokens.begin(), query.tokens.end(), sequence.begin());
  };
  const auto same_first = sequences_.find(query.tokens.front());
  if (same_first == sequences_.end()) return {};
  const std::vector<std::vector<TokenId>>& candidates = same_first->second;
  const auto found = std::find_if(candidates.begin(), candidates.end(), begins);
  if (found == candidates.end()) return {};
  const auto rest = std::span(*found).subspan(query.tokens.size());
  const std::size_t tokens = std::min({rest.size(), room.size(), std::size_t{options_.tokens_max}});
  for (std::size_t i = 0; i < tokens; ++i) {
    const bool is_wrong = random_unit(options_.seed, 11, drawn_++) < options_.wrong;
    room[i] = is_wrong ? TokenId((rest[i].value() + 1) % options_.vocabulary) : rest[i];
  }
  return {.tokens = static_cast<std::uint32_t>(tokens), .match = 0};
}

}  // namespace pagoda::speculate
