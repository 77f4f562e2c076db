#include "speculate/drafters.h"

#include <algorithm>
#include <array>

namespace pagoda::speculate {
namespace {

constexpr std::uint32_t kFollowedMax = 64;
constexpr std::size_t kCandidates = 16;
constexpr std::size_t kNgramCandidates = 4096;

// Copies what stands at `from`; returns how many tokens were copied.
std::uint32_t copy_from(std::span<const TokenId> text, std::size_t from, std::span<TokenId> room) {
  const auto tokens = text.subspan(from, std::min(room.size(), text.size() - from));
  std::copy(tokens.begin(), tokens.end(), room.begin());
  return static_cast<std::uint32_t>(tokens.size());
}

// Finds the output's last tokens in the prediction: the longest match, of several the first behind
// the place that the output left.
void find_again(PredictionCursor& prediction, std::span<const TokenId> output) {
  constexpr std::size_t kDepth = 32;
  std::size_t best_length = 0;
  std::size_t best_end = 0;
  const auto is_better = [&](std::size_t end, std::size_t length) {
    if (length != best_length) return length > best_length;
    return end >= prediction.next || best_end < prediction.next;
  };
  const PredictedText& text = *prediction.text;
  text.index().for_each(text.tokens(), output, kDepth, kCandidates * 4,
                        [&](std::size_t end, std::size_t length) {
                          if (is_better(end, length)) {
                            best_length = length;
                            best_end = end;
                          }
                          return true;
                        });
  if (best_length == 0) return;
  prediction.next = best_end;
  prediction.followed = static_cast<std::uint32_t>(best_length);
  prediction.is_lost = false;
}

}  // namespace

void PredictedText::make_index(std::uint32_t gram) {
  if (index_) return;
  index_.emplace(gram, tokens_.size());
  index_->catch_up(tokens_, tokens_.size());
}

Proposal PredictionDrafter::propose(const DraftQuery& query, SequenceDrafting& drafting,
                                    std::span<TokenId> room) {
  PredictionCursor& prediction = drafting.prediction;
  if (!prediction.text) return {};
  const std::vector<TokenId>& expected = prediction.text->tokens();
  const std::span<const TokenId> output = query.tokens.subspan(query.prompt_tokens);
  for (; prediction.output_seen < output.size(); ++prediction.output_seen) {
    const TokenId token = output[prediction.output_seen];
    const bool is_next = !prediction.is_lost && prediction.next < expected.size() &&
                         expected[prediction.next] == token;
    if (is_next) {
      ++prediction.next;
      prediction.followed = std::min(prediction.followed + 1, kFollowedMax);
    } else {
      prediction.is_lost = true;
      prediction.followed = 0;
    }
  }
  if (prediction.is_lost) find_again(prediction, output);
  if (prediction.is_lost) return {};
  return {.tokens = copy_from(expected, prediction.next, room), .match = prediction.followed};
}

Proposal TreeDrafter::propose(const DraftQuery& query, SequenceDrafting& /*drafting*/,
                              std::span<TokenId> room) {
  kv::SearchWork work;
  const std::size_t tokens = query.cache->lookup().continuation(
      query.sequence->lookup_scope(), query.sequence->last_node(), query.tokens, room, work);
  return {.tokens = static_cast<std::uint32_t>(tokens),
          .match = static_cast<std::uint32_t>(std::min<std::size_t>(query.tokens.size(), 64))};
}

Proposal SuffixDrafter::propose(const DraftQuery& query, SequenceDrafting& drafting,
                                std::span<TokenId> room) {
  Proposal best;
  if (drafting.own) {
    drafting.own->catch_up(query.tokens, kIndexedAtOnce);
    best = propose_from(query.tokens, *drafting.own, query.tokens, 0, room);
  }
  for (std::size_t age = 0; drafting.past && age < 2; ++age) {
    const PastOutputs::Half& half = drafting.past->half(age);
    const Proposal past = propose_from(half.text, half.index, query.tokens, best.match, room);
    if (past.tokens > 0) best = past;
  }
  return best;
}

// Nothing is written unless more than `match_min` tokens are equal.
Proposal SuffixDrafter::propose_from(std::span<const TokenId> text, const TokenIndex& index,
                                     std::span<const TokenId> tokens, std::uint32_t match_min,
                                     std::span<TokenId> room) const {
  std::array<std::size_t, kCandidates> ends;  // of equally long matches, newest first
  std::size_t count = 0;
  std::size_t longest = match_min;
  index.for_each(text, tokens, options_.suffix_depth, kCandidates,
                 [&](std::size_t end, std::size_t length) {
                   if (length > longest) {
                     longest = length;
                     count = 0;
                   }
                   if (length == longest && length > match_min) ends[count++] = end;
                   return true;
                 });
  if (count == 0) return {};
  const auto tokens_max =
      static_cast<std::size_t>(options_.suffix_factor * static_cast<double>(longest));
  double probability = 1;
  std::uint32_t written = 0;
  while (written < std::min(room.size(), tokens_max) && ends[0] + written < text.size()) {
    const TokenId next = text[ends[0] + written];
    const std::size_t before = count;
    std::size_t kept = 0;
    for (std::size_t i = 0; i < before; ++i) {
      const std::size_t at = ends[i] + written;
      if (at < text.size() && text[at] == next) ends[kept++] = ends[i];
    }
    count = kept;
    probability *= static_cast<double>(kept) / static_cast<double>(before);
    if (probability < options_.suffix_probability_min) break;
    room[written++] = next;
  }
  return {.tokens = written, .match = static_cast<std::uint32_t>(longest)};
}

Proposal NgramDrafter::propose(const DraftQuery& query, SequenceDrafting& drafting,
                               std::span<TokenId> room) {
  if (!drafting.own) return {};
  drafting.own->catch_up(query.tokens, kIndexedAtOnce);
  std::size_t longest = 0;
  std::size_t earliest = 0;
  drafting.own->for_each(query.tokens, query.tokens, options_.lookup_max, kNgramCandidates,
                         [&](std::size_t end, std::size_t length) {
                           if (length >= std::max<std::size_t>(longest, options_.lookup_min)) {
                             longest = length;
                             earliest = end;
                           }
                           return true;
                         });
  if (longest == 0) return {};
  return {.tokens = copy_from(query.tokens, earliest, room),
          .match = static_cast<std::uint32_t>(longest)};
}

Proposal ConstraintDrafter::propose(const DraftQuery& query, SequenceDrafting& /*drafting*/,
                                    std::span<TokenId> room) {
  if (query.forced == nullptr) return {};
  return {.tokens = static_cast<std::uint32_t>(query.forced->list_forced(room)), .match = 0};
}

}  // namespace pagoda::speculate
