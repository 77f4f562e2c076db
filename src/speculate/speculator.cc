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

std::shared_ptr<const PredictedText> Speculator::predict(
    const std::shared_ptr<PredictedText>& text) const {
  const bool is_on = options_.methods.contains(DraftMethod::kPrediction);
  if (!is_on || text == nullptr || text->tokens().empty()) return nullptr;
  text->make_index(gram_);
  return text;
}

void Speculator::begin_step(const StepTerms& terms) {
  terms_ = terms;
  step_.begin(terms.rows);
  offered_.clear();
  const std::uint64_t most = std::uint64_t{terms.sequences} * options_.tokens_max;
  terms_.drafts_max = static_cast<std::uint32_t>(std::min<std::uint64_t>(terms.drafts_max, most));
  may_pay_ = !weighs_costs() || costs_.may_pay(terms.rows, terms_.drafts_max);
}

// Weighs drafts as if they were the only ones of the step.
RowCosts::Choice Speculator::weigh(const RowCosts::Draft& draft) const {
  if (options_.weighs_costs) return costs_.choose(terms_.rows, draft);
  return {.drafts = draft.tokens, .tokens_per_second = draft.probability};
}

// The rule that was accepted more often so far is the one that is used; the other's rate recovers
// while it is not.
RowCosts::Draft Speculator::draft_of_model(SequenceDrafting& drafting,
                                           std::uint32_t tokens_max) const {
  const auto rate = [&](std::uint32_t rule) {
    return drafting.acceptance.probability(DraftMethod::kDraftModel, rule);
  };
  drafting.model_draws = drafting.is_sampled && rate(kDrawnRule) >= rate(kLikeliestRule);
  const std::uint32_t rule = drafting.model_draws ? kDrawnRule : kLikeliestRule;
  const RowCosts* const costs = terms_.model_costs;
  return {.probability = rate(rule),
          .tokens = tokens_max,
          .token_seconds = costs == nullptr ? 0 : costs->seconds(1)};
}

// The draft of one sequence as if all had such a draft: one launch finds a token of each.
RowCosts::Draft Speculator::alike(RowCosts::Draft draft) const {
  draft.sequences = std::max(terms_.sequences, 1u);
  if (draft.token_seconds > 0) {
    draft.token_seconds = terms_.model_costs->seconds(draft.sequences) / draft.sequences;
  }
  return draft;
}

std::uint32_t Speculator::weigh_model(SequenceDrafting& drafting, std::uint32_t tokens_max) {
  const RowCosts::Draft draft =
      draft_of_model(drafting, std::min({tokens_max, drafting.tokens_max, kDraftTokensMax}));
  const std::uint32_t drafts = std::max(weigh(draft).drafts, weigh(alike(draft)).drafts);
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
  // Nobody looks for drafts that would not pay if all of them were accepted.
  if (most == 0 || !may_pay_) return 0;
  if (forced_ != nullptr) {
    const Proposal forced = forced_->propose(query, drafting, std::span(proposed_));
    const std::uint32_t tokens = std::min(forced.tokens, most);
    drafting.method = DraftMethod::kTree;
    drafting.match = forced.match;
    draft.assign(proposed_.begin(), proposed_.begin() + tokens);
    return tokens;
  }
  // A method is compared with the draft model as that is weighed: alone, or for all sequences.
  RowCosts::Choice best;
  std::uint32_t tokens = 0;
  bool for_all = false;
  if (query.model_tokens_max > 0) {
    tokens = std::min(most, query.model_tokens_max);
    const RowCosts::Draft by_model = draft_of_model(drafting, tokens);
    best = weigh(by_model);
    for_all = best.drafts == 0;
    if (for_all) best = weigh(alike(by_model));
    drafting.method = DraftMethod::kDraftModel;
    drafting.match = drafting.model_draws ? kDrawnRule : kLikeliestRule;
  }
  for (std::size_t i = 0; i < drafters_.size(); ++i) {
    if (!drafters_[i]) continue;
    const Proposal proposal = drafters_[i]->propose(query, drafting, room);
    if (proposal.tokens == 0) continue;
    const auto method = static_cast<DraftMethod>(i);
    const RowCosts::Draft found = {drafting.acceptance.probability(method, proposal.match),
                                   proposal.tokens};
    const RowCosts::Choice choice = weigh(for_all ? alike(found) : found);
    if (tokens > 0 && choice.tokens_per_second <= best.tokens_per_second) {
      if (choice.drafts == 0) drafting.acceptance.note_unused(method, proposal.match);
      continue;
    }
    if (tokens > 0 && best.drafts == 0) {
      drafting.acceptance.note_unused(drafting.method, drafting.match);
    }
    best = choice;
    tokens = proposal.tokens;
    drafting.method = method;
    drafting.match = proposal.match;
    draft.assign(room.begin(), room.begin() + proposal.tokens);
  }
  return tokens;
}

void Speculator::offer(SequenceDrafting& drafting, std::uint32_t tokens, DraftMethod method,
                       std::uint32_t match) {
  offered_.push_back({&drafting, method, match});
  step_.add({.tokens = tokens,
             .probability = drafting.acceptance.probability(method, match),
             .by_model = method == DraftMethod::kDraftModel});
}

std::uint32_t Speculator::choose(double delay) {
  const std::uint32_t tokens = step_.choose({.costs = weighs_costs() ? &costs_ : nullptr,
                                             .model_costs = terms_.model_costs,
                                             .tokens_max = terms_.drafts_max,
                                             .delay = costs_.is_measured() ? delay : 0});
  for (std::size_t i = 0; i < offered_.size(); ++i) {
    const Offered& offered = offered_[i];
    if (step_.taken(i) > 0) continue;
    offered.drafting->acceptance.note_unused(offered.method, offered.match);
  }
  return tokens;
}

void Speculator::note_verified(SequenceDrafting& drafting, std::uint32_t drafted,
                               std::uint32_t accepted) {
  drafting.acceptance.note(drafting.method, drafting.match, drafted, accepted);
}

void Speculator::note_output(SequenceDrafting& drafting, std::span<const TokenId> output) {
  if (drafting.past && output.size() > gram_) drafting.past->add(output);
}

}  // namespace pagoda::speculate
