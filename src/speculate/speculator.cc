#include "speculate/speculator.h"

#include <algorithm>

#include "speculate/drafters.h"

namespace pagoda::speculate {
namespace {

constexpr std::uint32_t kGram = 3;

std::uint32_t gram_of(const SpeculationOptions& options) {
  const bool ngram = options.methods.contains(DraftMethod::kNgram);
  return ngram ? std::clamp(options.lookup_min, 1u, kGram) : kGram;
}

}  // namespace

Speculator::Speculator(const SpeculationOptions& options, Drafter* forced, float row_cost)
    : options_(options),
      forced_(forced),
      gram_(gram_of(options)),
      outputs_(gram_, options.suffix_requests),
      costs_(row_cost) {
  const auto set = [&](DraftMethod method, std::unique_ptr<Drafter> drafter) {
    if (!options.methods.contains(method)) return;
    drafters_[static_cast<std::size_t>(method)] = std::move(drafter);
  };
  set(DraftMethod::kPrediction, std::make_unique<PredictionDrafter>());
  set(DraftMethod::kTree, std::make_unique<TreeDrafter>());
  set(DraftMethod::kSuffix, std::make_unique<SuffixDrafter>(options));
  set(DraftMethod::kNgram, std::make_unique<NgramDrafter>(options));
  set(DraftMethod::kConstraint, std::make_unique<ConstraintDrafter>());
}

std::unique_ptr<SequenceDrafting> Speculator::open(const SequenceTerms& terms) {
  auto drafting = std::make_unique<SequenceDrafting>();
  drafting->tokens_max = std::min({terms.tokens_max, options_.tokens_max, kDraftTokensMax});
  const bool suffix = options_.methods.contains(DraftMethod::kSuffix);
  if (suffix || options_.methods.contains(DraftMethod::kNgram)) {
    drafting->tokens_indexed = terms.tokens_expected;
  }
  if (suffix && options_.suffix_requests > 0) drafting->past = outputs_.open(terms.scope);
  drafting->prediction.text = terms.prediction;
  drafting->is_sampled = terms.is_sampled;
  return drafting;
}

void Speculator::start(SequenceDrafting& drafting) const {
  if (drafting.own || drafting.tokens_indexed == 0) return;
  drafting.own = std::make_unique<TokenIndex>(gram_, drafting.tokens_indexed);
}

std::shared_ptr<const PredictedText> Speculator::predict(std::span<const TokenId> tokens) const {
  if (tokens.empty() || !options_.methods.contains(DraftMethod::kPrediction)) return nullptr;
  return std::make_shared<const PredictedText>(std::vector<TokenId>(tokens.begin(), tokens.end()),
                                               gram_);
}

RowCosts::Choice Speculator::choose(double probability, std::uint32_t drafts_max,
                                    double draft_seconds) const {
  if (options_.weighs_costs) return costs_.choose(load_, probability, drafts_max, draft_seconds);
  return {.drafts = drafts_max,
          .tokens = static_cast<double>(drafts_max),
          .tokens_per_second = probability};
}

// The rule that was accepted more often so far is the one that is used; the other's rate recovers
// while it is not.
RowCosts::Choice Speculator::choose_model(SequenceDrafting& drafting,
                                          std::uint32_t tokens_max) const {
  const auto rate = [&](std::uint32_t rule) {
    return drafting.acceptance.probability(DraftMethod::kDraftModel, rule);
  };
  drafting.model_draws = drafting.is_sampled && rate(kDrawnRule) >= rate(kLikeliestRule);
  const std::uint32_t rule = drafting.model_draws ? kDrawnRule : kLikeliestRule;
  return choose(rate(rule), tokens_max, model_seconds_);
}

std::uint32_t Speculator::weigh_model(SequenceDrafting& drafting, std::uint32_t tokens_max) {
  const std::uint32_t most = std::min({tokens_max, drafting.tokens_max, kDraftTokensMax});
  const std::uint32_t drafts = choose_model(drafting, most).drafts;
  const std::uint32_t chosen = drafting.model_draws ? kDrawnRule : kLikeliestRule;
  for (const std::uint32_t rule : {kLikeliestRule, kDrawnRule}) {
    if (drafts > 0 && rule == chosen) continue;
    drafting.acceptance.note_unused(DraftMethod::kDraftModel, rule);
  }
  return drafts;
}

std::uint32_t Speculator::propose(const DraftQuery& query, SequenceDrafting& drafting,
                                  std::uint32_t tokens_max, std::vector<TokenId>& draft) {
  draft.clear();
  start(drafting);  // of a fork, which nobody admits
  const std::uint32_t most = std::min({tokens_max, drafting.tokens_max, kDraftTokensMax});
  const std::span<TokenId> room = std::span(proposed_).first(most);
  if (forced_ != nullptr) {
    const Proposal forced = forced_->propose(query, drafting, std::span(proposed_));
    drafting.method = DraftMethod::kTree;
    drafting.match = forced.match;
    std::uint32_t tokens = std::min(forced.tokens, most);
    if (forced_->weighs_costs()) {
      const double probability = drafting.acceptance.probability(drafting.method, drafting.match);
      tokens = choose(probability, tokens).drafts;
      if (tokens == 0) drafting.acceptance.note_unused(drafting.method, drafting.match);
    }
    draft.assign(proposed_.begin(), proposed_.begin() + tokens);
    return tokens;
  }
  // Nobody looks for a draft that would not pay if all of it were accepted.
  if (most == 0 || choose(1.0, most).drafts == 0) return 0;
  RowCosts::Choice best;
  if (query.model_tokens_max > 0) {
    best = choose_model(drafting, std::min(most, query.model_tokens_max));
    drafting.method = DraftMethod::kDraftModel;
    drafting.match = drafting.model_draws ? kDrawnRule : kLikeliestRule;
  }
  for (std::size_t i = 0; i < drafters_.size(); ++i) {
    if (!drafters_[i]) continue;
    const Proposal proposal = drafters_[i]->propose(query, drafting, room);
    if (proposal.tokens == 0) continue;
    const auto method = static_cast<DraftMethod>(i);
    const double probability = drafting.acceptance.probability(method, proposal.match);
    const RowCosts::Choice choice = choose(probability, proposal.tokens);
    if (choice.drafts == 0) {
      drafting.acceptance.note_unused(method, proposal.match);
      continue;
    }
    if (best.drafts > 0 && choice.tokens_per_second <= best.tokens_per_second) continue;
    best = choice;
    drafting.method = method;
    drafting.match = proposal.match;
    draft.assign(room.begin(), room.begin() + choice.drafts);
  }
  return best.drafts;
}

void Speculator::note_drafted(const SequenceDrafting& drafting, std::uint32_t tokens) {
  const double probability = drafting.acceptance.probability(drafting.method, drafting.match);
  double reached = 1;
  for (std::uint32_t i = 0; i < tokens; ++i) load_.tokens += reached *= probability;
  load_.rows += tokens;
  if (drafting.method == DraftMethod::kDraftModel) load_.draft_seconds += tokens * model_seconds_;
}

bool Speculator::drafts_pay(double delay) const {
  if (load_.rows == rows_plain_) return false;
  const bool weighs = forced_ != nullptr ? forced_->weighs_costs() : options_.weighs_costs;
  if (!weighs || !costs_.is_measured()) return true;
  const double with = load_.tokens / (costs_.seconds(load_.rows) + load_.draft_seconds + delay);
  return with > rows_plain_ / costs_.seconds(rows_plain_);
}

void Speculator::note_verified(SequenceDrafting& drafting, std::uint32_t drafted,
                               std::uint32_t accepted) {
  drafting.acceptance.note(drafting.method, drafting.match, drafted, accepted);
}

void Speculator::note_output(SequenceDrafting& drafting, std::span<const TokenId> output) {
  if (drafting.past && output.size() > gram_) drafting.past->add(output);
}

}  // namespace pagoda::speculate
