#include "engine/drafting.h"

#include <algorithm>

namespace pagoda::engine {
namespace {

// True: the chunk is the last token of a sequence that has begun to answer, and all tokens before
// it are computed. Only then is it known what the draft follows.
bool may_have_draft(const sched::ScheduledChunk& chunk) {
  const auto& seq = static_cast<const OpenSequence&>(*chunk.task);
  return seq.drafting && !seq.drops && chunk.samples && chunk.tokens == 1 &&
         seq.sequence_count == 1 && seq.samples_in_flight == 1 &&
         seq.tokens.size() > seq.prompt_tokens && seq.tokens_computed() + 1 == seq.tokens.size();
}

}  // namespace

Drafting::Drafting(const DraftingOptions& options, const kv::Cache& cache,
                   sched::Scheduler& scheduler, const Runner& runner, EngineMeters& meters)
    : options_(options),
      cache_(cache),
      scheduler_(scheduler),
      runner_(runner),
      meters_(meters),
      speculator_(options.speculation, options.drafter) {}

void Drafting::open(OpenRequest& open, const Request& request) {
  const std::uint32_t most =
      std::min(runner_.drafts_max(), request.draft_tokens_max.value_or(speculate::kDraftTokensMax));
  if (!speculator_.is_on() || most == 0 || request.action != CacheAction::kNone) return;
  if (request.pooling != Pooling::kNone) return;
  const bool is_public = request.cache_salt.empty();
  const speculate::Speculator::SequenceTerms terms = {
      .prediction = speculator_.predict(request.prediction),
      .tokens_expected = open.sequences.front()->tokens_expected(),
      .tokens_max = most,
      .scope = {is_public ? 0 : request.tenant.value(), request.cache_salt}};
  for (const auto& seq : open.sequences) {
    seq->drafting = speculator_.open(terms);
    seq->draft.reserve(speculate::kDraftTokensMax);
  }
}

void Drafting::add_drafts(sched::Step& step, const sched::Plan& plan) {
  if (!speculator_.is_on()) return;
  for (const sched::Admission& admission : plan.admit) {
    const auto& seq = static_cast<const OpenSequence&>(*admission.task);
    if (seq.drafting) speculator_.start(*seq.drafting);
  }
  std::uint32_t rows = 0;
  for (const sched::ScheduledChunk& chunk : step.chunks) rows += chunk.tokens;
  speculator_.begin_step(rows);
  std::uint64_t tokens_left = plan.tokens_left;
  for (sched::ScheduledChunk& chunk : step.chunks) {
    if (tokens_left == 0) return;
    OpenSequence& seq = static_cast<OpenSequence&>(*chunk.task);
    if (!may_have_draft(chunk) || !propose(seq, tokens_left)) continue;
    const std::uint32_t drafts = scheduler_.add_drafts(
        chunk, static_cast<std::uint32_t>(seq.draft.size()), plan.load.empty());
    tokens_left -= drafts;
    if (drafts > 0) speculator_.note_drafted(*seq.drafting, drafts);
  }
}

bool Drafting::propose(OpenSequence& seq, std::uint64_t tokens_left) {
  const std::uint64_t most = std::min({tokens_left, seq.tokens_max - seq.tokens.size() - 1,
                                       std::uint64_t{speculate::kDraftTokensMax}});
  const speculate::DraftQuery query = {.tokens = seq.tokens,
                                       .prompt_tokens = seq.prompt_tokens,
                                       .cache = &cache_,
                                       .sequence = &*seq.sequence,
                                       .forced = seq.sampling.forced_tokens()};
  if (!speculator_.propose(query, *seq.drafting, static_cast<std::uint32_t>(most), seq.draft)) {
    return false;
  }
  cut_draft(seq);
  return !seq.draft.empty();
}

// Cuts the draft before the first token that is not in the vocabulary, or that the sequence ends
// with: nothing is computed behind it.
void Drafting::cut_draft(OpenSequence& seq) const {
  std::uint64_t generated = seq.tokens.size() - seq.prompt_tokens;
  const auto last = std::find_if(seq.draft.begin(), seq.draft.end(), [&](TokenId token) {
    return token.value() >= options_.vocabulary ||
           seq.sampling.stop_criteria().after(token, ++generated).has_value();
  });
  seq.draft.erase(last, seq.draft.end());
}

void Drafting::note_verified(OpenSequence& seq, std::uint32_t drafted, std::uint32_t accepted) {
  speculator_.note_verified(*seq.drafting, drafted, accepted);
  DraftCounts counts = {.drafts = 1, .tokens = drafted, .accepted = accepted};
  if (seq.drafting->method == speculate::DraftMethod::kPrediction) {
    counts.prediction_accepted = accepted;
    counts.prediction_rejected = drafted - accepted;
  }
  meters_.note_draft(seq, counts);
}

void Drafting::note_step(const sched::Step& step, double seconds) {
  if (!speculator_.is_on()) return;
  std::uint32_t rows = 0;
  for (const sched::ScheduledChunk& chunk : step.chunks) {
    if (!chunk.samples || chunk.tokens != chunk.drafts + 1) return;
    rows += chunk.tokens;
  }
  speculator_.note_step(rows, seconds);
}

void Drafting::note_end(const OpenSequence& seq, std::uint64_t prompt_tokens) {
  if (!seq.drafting || seq.tokens.size() <= prompt_tokens) return;
  speculator_.note_output(*seq.drafting, std::span(seq.tokens).subspan(prompt_tokens));
}

}  // namespace pagoda::engine
