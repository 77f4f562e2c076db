#include "engine/drafting.h"

#include <algorithm>
#include <span>
#include <utility>

namespace pagoda::engine {
namespace {

// A draft model computes up to so many tokens that it lacks together with a draft.
constexpr std::uint64_t kMissingTokensMax = 32;
// It catches up with a sequence that lacks up to so many tokens for each that may still come.
constexpr std::uint64_t kMissingPerOutput = 64;
// The time in which a draft model catches up with sequences, as a share of a step's.
constexpr double kCatchUpShare = 0.5;

// The weight of the newest step among those that say how long the host takes.
constexpr double kHostWeight = 0.1;

// True: drafts may follow the sequence's output, which has begun.
bool has_output(const OpenSequence& seq) {
  return seq.drafting && !seq.drops && !seq.paused && seq.sequence_count == 1 &&
         seq.tokens.size() > seq.prompt_tokens;
}

// True: a token behind the sequence's known ones is being sampled, or about to be, and all tokens
// before the last known one are computed.
bool may_have_draft(const OpenSequence& seq) {
  return has_output(seq) && seq.samples_in_flight == 1 &&
         seq.tokens_computed() + 1 == seq.tokens.size();
}

// True: the chunk is the last token of such a sequence, so that it is known what a draft follows.
bool may_have_draft(const sched::ScheduledChunk& chunk) {
  return chunk.samples && chunk.tokens == 1 &&
         may_have_draft(static_cast<const OpenSequence&>(*chunk.task));
}

}  // namespace

Drafting::Drafting(const DraftingOptions& options, const kv::Cache& cache,
                   sched::Scheduler& scheduler, const Runner& runner, EngineMeters& meters,
                   const Clock& clock)
    : options_(options),
      cache_(cache),
      scheduler_(scheduler),
      runner_(runner),
      meters_(meters),
      clock_(clock),
      speculator_(options.speculation, options.drafter, runner.row_cost()) {}

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
      .is_sampled = !is_greedy(request.sampling),
      .scope = {is_public ? 0 : request.tenant.value(), request.cache_salt}};
  for (const auto& seq : open.sequences) {
    seq->drafting = speculator_.open(terms);
    seq->draft.reserve(speculate::kDraftTokensMax);
  }
}

// Behind a launch with drafts no other is launched ahead: its sequences would miss that one, and
// blocks that only rejected tokens hold come back first.
bool Drafting::awaits_tokens() {
  if (scheduler_.launches_running() == 0) return false;
  if (!speculator_.is_on() || runner_.drafts_max() == 0) return false;
  const std::span<sched::SequenceTask* const> running = scheduler_.running();
  const auto is_verified = [](const sched::SequenceTask* task) {
    return task->drafts_in_flight > 0;
  };
  if (std::any_of(running.begin(), running.end(), is_verified)) return true;
  const Timed timed(*this);
  const auto rows = static_cast<std::uint32_t>(running.size());
  begin_step(rows, rows, drafts_beside(rows));
  for (sched::SequenceTask* const task : running) {
    OpenSequence& seq = static_cast<OpenSequence&>(*task);
    const std::uint32_t drafts = find_draft(seq);
    if (drafts > 0) speculator_.offer(*seq.drafting, drafts);
  }
  return speculator_.choose(host_seconds_) > 0;
}

void Drafting::begin_step(std::uint32_t rows, std::uint32_t sequences, std::uint32_t drafts_max) {
  speculator_.begin_step(
      {.rows = rows,
       .sequences = sequences,
       .drafts_max = drafts_max,
       .model_costs = options_.model == nullptr ? nullptr : options_.model->costs()});
}

// Returns how many draft tokens a step of so many rows has room for.
std::uint32_t Drafting::drafts_beside(std::uint32_t rows) const {
  const std::uint32_t most = scheduler_.options().batched_tokens_max;
  return std::min(most - std::min(rows, most), runner_.launch_drafts_max());
}

// Looks for a draft behind the tokens that are known. Its first token is the one that is being
// sampled, unless the draft model is to find it; returns how many tokens may follow that, as far as
// can be seen now.
std::uint32_t Drafting::find_draft(OpenSequence& seq) {
  if (!may_have_draft(seq) || seq.tokens.size() + 2 >= seq.tokens_max) return 0;
  note_expected(seq);
  const std::uint64_t most =
      std::min<std::uint64_t>(seq.tokens_max - seq.tokens.size() - 1, speculate::kDraftTokensMax);
  speculate::DraftQuery query = query_of(seq);
  if (is_near(seq) &&
      speculator_.weigh_model(*seq.drafting, static_cast<std::uint32_t>(most)) > 0) {
    query.model_tokens_max = static_cast<std::uint32_t>(most);
  }
  const std::uint32_t drafts =
      speculator_.propose(query, *seq.drafting, static_cast<std::uint32_t>(most), seq.draft);
  if (drafts == 0) return 0;
  if (seq.drafting->method == speculate::DraftMethod::kDraftModel) return drafts;
  seq.drafting->expected = {seq.tokens.size(), seq.draft.front()};
  return seq.drafting->tokens_max == 1 ? 1 : drafts - 1;
}

// Tells what became of the draft that find_draft() found last.
void Drafting::note_expected(OpenSequence& seq) {
  const auto expected = std::exchange(seq.drafting->expected, std::nullopt);
  if (!expected || expected->position >= seq.tokens.size()) return;
  const bool came = seq.tokens[expected->position] == expected->token;
  speculator_.note_verified(*seq.drafting, 1, came ? 1 : 0);
}

void Drafting::add_drafts(sched::Step& step, const sched::Plan& plan) {
  if (!speculator_.is_on()) return;
  const Timed timed(*this);
  for (const sched::Admission& admission : plan.admit) {
    const auto& seq = static_cast<const OpenSequence&>(*admission.task);
    if (seq.drafting) speculator_.start(*seq.drafting);
  }
  model_seconds_ = 0;
  // A launch that is ahead of another has no drafts, and the next one need not wait for it.
  if (scheduler_.launches_running() > 1) return;
  std::uint32_t rows = 0;
  std::uint32_t candidates = 0;
  for (const sched::ScheduledChunk& chunk : step.chunks) {
    rows += chunk.tokens;
    candidates += may_have_draft(chunk) ? 1 : 0;
  }
  const auto tokens_max = static_cast<std::uint32_t>(
      std::min<std::uint64_t>(plan.tokens_left, runner_.launch_drafts_max()));
  if (candidates == 0 || tokens_max == 0) return;
  if (options_.model != nullptr) options_.model->begin_step();
  begin_step(rows, candidates, tokens_max);
  offered_.clear();
  for (sched::ScheduledChunk& chunk : step.chunks) {
    if (!may_have_draft(chunk)) continue;
    OpenSequence& seq = static_cast<OpenSequence&>(*chunk.task);
    note_expected(seq);
    const std::uint32_t drafts = propose(chunk, tokens_max, plan.load.empty());
    if (drafts == 0) continue;
    speculator_.offer(*seq.drafting, drafts);
    offered_.push_back({&chunk, jobs_.size()});
  }
  speculator_.choose(runner_.launches_ahead() > 0 ? host_seconds_ : 0);
  for (std::size_t i = 0; i < offered_.size(); ++i) {
    take_draft(offered_[i], speculator_.taken(i), plan.load.empty());
  }
  if (!jobs_.empty()) run_model(plan.load.empty());
}

// It catches up where its drafts would be taken if it knew all sequences.
void Drafting::catch_up(const sched::Step& step) {
  if (options_.model == nullptr || scheduler_.launches_running() < 2) return;
  const Timed timed(*this);
  options_.model->begin_step();
  const auto rows = static_cast<std::uint32_t>(step.chunks.size());
  begin_step(rows, rows, drafts_beside(rows));
  bool all_near = true;
  for (const sched::ScheduledChunk& chunk : step.chunks) {
    OpenSequence& seq = static_cast<OpenSequence&>(*chunk.task);
    if (!has_output(seq)) continue;
    if (seq.drafted) options_.model->touch(*seq.drafted);
    all_near = all_near && is_near(seq);
    const std::uint32_t drafts = speculator_.weigh_model(*seq.drafting, speculate::kDraftTokensMax);
    if (drafts > 0) speculator_.offer_model(*seq.drafting, drafts);
  }
  if (all_near || speculator_.choose(host_seconds_) == 0) return;
  for (const sched::ScheduledChunk& chunk : step.chunks) {
    OpenSequence& seq = static_cast<OpenSequence&>(*chunk.task);
    if (has_output(seq) && !is_near(seq)) model_tokens(seq, speculate::kDraftTokensMax);
  }
  if (jobs_.empty()) return;
  run_model(false);
  has_caught_up_ = true;
}

bool Drafting::is_near(const OpenSequence& seq) const {
  return options_.model != nullptr && seq.drafted &&
         options_.model->is_near(*seq.drafted, seq.tokens, kMissingTokensMax);
}

void Drafting::take_draft(const Offered& offered, std::uint32_t tokens, bool may_take_blocks) {
  if (tokens == 0) return;
  OpenSequence& seq = static_cast<OpenSequence&>(*offered.chunk->task);
  if (seq.drafting->method == speculate::DraftMethod::kDraftModel) {
    jobs_[offered.jobs - 1].drafts = tokens;
    job_chunks_[offered.jobs - 1] = offered.chunk;
    return;
  }
  seq.draft.resize(tokens, TokenId(0));
  scheduler_.add_drafts(*offered.chunk, tokens, may_take_blocks);
}

speculate::DraftQuery Drafting::query_of(OpenSequence& seq) const {
  return {.tokens = seq.tokens,
          .prompt_tokens = seq.prompt_tokens,
          .cache = &cache_,
          .sequence = &*seq.sequence,
          .forced = seq.sampling.forced_tokens()};
}

// Returns how many draft tokens the sequence could have; the last job is to find them where the
// method is the draft model.
std::uint32_t Drafting::propose(const sched::ScheduledChunk& chunk, std::uint64_t tokens_max,
                                bool may_take_blocks) {
  OpenSequence& seq = static_cast<OpenSequence&>(*chunk.task);
  const auto drafts_max = static_cast<std::uint32_t>(std::min(
      {tokens_max, seq.tokens_max - seq.tokens.size() - 1,
       scheduler_.draft_room(chunk, may_take_blocks), std::uint64_t{speculate::kDraftTokensMax}}));
  speculate::DraftQuery query = query_of(seq);
  query.model_tokens_max = model_tokens(seq, drafts_max);
  const std::uint32_t drafts = speculator_.propose(query, *seq.drafting, drafts_max, seq.draft);
  if (drafts > 0 && seq.drafting->method == speculate::DraftMethod::kDraftModel) return drafts;
  cut_draft(seq);
  return static_cast<std::uint32_t>(seq.draft.size());
}

// Returns how many tokens the draft model may find for the sequence; 0: it would not pay, or the
// model lacks too many of the sequence's tokens. A sequence for which it would pay has a job, by
// which the model computes what it lacks.
std::uint32_t Drafting::model_tokens(OpenSequence& seq, std::uint32_t drafts_max) {
  if (options_.model == nullptr || seq.drops) return 0;
  if (speculator_.weigh_model(*seq.drafting, drafts_max) == 0) return 0;
  const Request& asked = seq.request->asked;
  if (!seq.drafted) {
    kv::CacheScope scope =
        options_.model->scope(asked.cache_salt, kv::OwnerId(asked.tenant.value()));
    scope.public_tokens = asked.public_tokens;
    seq.drafted = std::make_unique<DraftedSequence>(*options_.model, std::move(scope));
  }
  const auto missing = options_.model->tokens_missing(*seq.drafted, seq.tokens);
  const std::uint64_t output_left = seq.tokens_max - seq.tokens.size();
  if (!missing || *missing > output_left * kMissingPerOutput) return 0;
  jobs_.push_back({.drafted = seq.drafted.get(), .tokens = seq.tokens, .draft = &seq.draft});
  job_chunks_.push_back(nullptr);
  if (*missing > kMissingTokensMax) return 0;
  const std::uint64_t context_left = options_.model->options().context_tokens - seq.tokens.size();
  return static_cast<std::uint32_t>(std::min<std::uint64_t>(drafts_max, context_left));
}

void Drafting::run_model(bool may_take_blocks) {
  const bool has_same_ids = options_.model->options().vocabulary == options_.vocabulary;
  for (std::size_t i = 0; i < jobs_.size(); ++i) {
    if (job_chunks_[i] == nullptr) continue;
    const auto& seq = static_cast<const OpenSequence&>(*job_chunks_[i]->task);
    jobs_[i].sampling = seq.sampling.for_drafts(seq.drafting->model_draws, has_same_ids);
  }
  const speculate::RowCosts& costs = speculator_.costs();
  const double step_seconds = costs.is_measured() ? costs.seconds(speculator_.rows()) : 0;
  const std::int64_t began = clock_.now_ns();
  options_.model->draft(jobs_, options_.model->tokens_in(step_seconds * kCatchUpShare), clock_);
  model_seconds_ = seconds_between(began, clock_.now_ns());
  meters_.note_draft_model(model_seconds_);
  for (sched::ScheduledChunk* const chunk : job_chunks_) {
    if (chunk == nullptr) continue;
    OpenSequence& seq = static_cast<OpenSequence&>(*chunk->task);
    if (seq.draft.empty()) speculator_.note_failed(*seq.drafting);
    cut_draft(seq);
    if (seq.draft.empty()) continue;
    scheduler_.add_drafts(*chunk, static_cast<std::uint32_t>(seq.draft.size()), may_take_blocks);
  }
  jobs_.clear();
  job_chunks_.clear();
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
  const bool is_predicted = seq.drafting->method == speculate::DraftMethod::kPrediction;
  meters_.note_draft(
      seq, {.drafts = 1, .tokens = drafted, .prediction_tokens = is_predicted ? drafted : 0});
}

void Drafting::note_accepted(OpenSequence& seq, std::uint32_t position) {
  const bool is_predicted = seq.drafting->method == speculate::DraftMethod::kPrediction;
  meters_.note_draft(seq, {.accepted = 1, .prediction_accepted = is_predicted ? 1u : 0u});
  meters_.note_accepted_at(position);
}

void Drafting::note_step(const sched::Step& step, double seconds) {
  // The draft model may have delayed it.
  if (!speculator_.is_on() || std::exchange(has_caught_up_, false)) return;
  std::uint32_t rows = 0;
  for (const sched::ScheduledChunk& chunk : step.chunks) {
    if (!chunk.samples || chunk.tokens != chunk.drafts + 1) return;
    rows += chunk.tokens;
  }
  speculator_.note_step(rows, seconds);
}

void Drafting::note_host(double seconds) {
  host_seconds_ += (seconds - host_seconds_) * kHostWeight;
}

void Drafting::forget(std::optional<TenantId> tenant) {
  if (tenant) {
    speculator_.forget(tenant->value());
  } else {
    speculator_.forget_all();
  }
  if (options_.model == nullptr) return;
  options_.model->clear(tenant ? std::optional(kv::OwnerId(tenant->value())) : std::nullopt);
}

void Drafting::retire(TenantId tenant) {
  speculator_.forget(tenant.value());
  if (options_.model != nullptr) options_.model->retire(kv::OwnerId(tenant.value()));
}

void Drafting::note_end(const OpenSequence& seq, std::uint64_t prompt_tokens) {
  if (!seq.drafting || seq.tokens.size() <= prompt_tokens) return;
  speculator_.note_output(*seq.drafting, std::span(seq.tokens).subspan(prompt_tokens));
}

}  // namespace pagoda::engine
