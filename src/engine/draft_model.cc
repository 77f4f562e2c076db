#include "engine/draft_model.h"

#include <algorithm>
#include <utility>

#include "base/assert.h"

namespace pagoda::engine {
namespace {

constexpr double kNewestWeight = 0.25;  // of a measurement, in the moving average

// So many tokens are caught up with in a step in any case: about as many as a launch computes in
// twice the time of one.
std::uint64_t least_catch_up_tokens(const Runner& runner) {
  return std::max<std::uint64_t>(16, static_cast<std::uint64_t>(1 / runner.row_cost()));
}

}  // namespace

DraftedSequence::DraftedSequence(DraftModel& model, kv::CacheScope scope)
    : model_(model), scope_(std::move(scope)) {
  model_.sequences_.push_back(this);
}

DraftedSequence::~DraftedSequence() { std::erase(model_.sequences_, this); }

DraftModel::DraftModel(DraftModelOptions options, kv::Cache& cache, Runner& runner)
    : options_(std::move(options)),
      cache_(cache),
      runner_(runner),
      catch_up_tokens_min_(least_catch_up_tokens(runner)),
      costs_(runner.row_cost()) {}

kv::CacheScope DraftModel::scope(std::string_view salt, kv::OwnerId owner) {
  Result<kv::CacheScope> made = cache_.scope(options_.space, salt, {}, owner);
  ASSERT(made.ok(), "the target's cache took the salt");
  return std::move(made).value();
}

void DraftModel::begin_step() {
  if (++steps_unmeasured_ > kForgetSteps) is_measured_ = false;
}

std::optional<std::uint64_t> DraftModel::tokens_missing(DraftedSequence& drafted,
                                                        std::span<const TokenId> tokens) {
  if (drafted.looks_to_skip_ > 0) {
    --drafted.looks_to_skip_;
    return std::nullopt;
  }
  if (tokens.size() >= options_.context_tokens || !has_all(drafted, tokens)) return std::nullopt;
  drafted.step_ = step_;
  if (drafted.sequence_) {
    commit_accepted(drafted, tokens);
    find_more(drafted, tokens);
  } else {
    open(drafted, tokens);
  }
  return tokens.size() - drafted.sequence_->tokens_computed();
}

bool DraftModel::is_near(const DraftedSequence& drafted, std::span<const TokenId> tokens,
                         std::uint64_t missing_max) const {
  if (!drafted.sequence_ || drafted.is_foreign_) return false;
  if (tokens.size() >= options_.context_tokens) return false;
  return tokens.size() <= drafted.sequence_->tokens_computed() + missing_max;
}

bool DraftModel::has_all(DraftedSequence& drafted, std::span<const TokenId> tokens) const {
  for (const TokenId token : tokens.subspan(drafted.tokens_checked_)) {
    drafted.is_foreign_ = drafted.is_foreign_ || token.value() >= options_.vocabulary;
  }
  drafted.tokens_checked_ = tokens.size();
  return !drafted.is_foreign_;
}

// Blocks that are found are free to be held: opening the whole ones takes no others.
void DraftModel::open(DraftedSequence& drafted, std::span<const TokenId> tokens) {
  const kv::Match match = cache_.match(drafted.scope_, tokens, kv::MatchEnd::kWholeBlock);
  auto opened = cache_.open(drafted.scope_, match, tokens);
  auto* const done = std::get_if<kv::Opened>(&opened);
  ASSERT(done != nullptr && done->copies.empty(), "whole blocks are shared");
  drafted.sequence_.emplace(std::move(done->sequence));
}

// Another sequence may have computed the same prompt meanwhile: forks begin side by side.
void DraftModel::find_more(DraftedSequence& drafted, std::span<const TokenId> tokens) {
  const std::uint64_t computed = drafted.sequence_->tokens_computed();
  if (tokens.size() - computed <= kLookAgainTokens) return;
  const kv::Match match = cache_.match(drafted.scope_, tokens, kv::MatchEnd::kWholeBlock);
  if (match.tokens < computed + cache_.options().block_tokens) return;
  drafted.sequence_.reset();
  open(drafted, tokens);
}

// Tokens that were computed and are tokens of the sequence by now are committed. Rows of draft
// tokens that the target did not take are written over.
void DraftModel::commit_accepted(DraftedSequence& drafted, std::span<const TokenId> tokens) {
  const std::span<const TokenId> behind = tokens.subspan(drafted.sequence_->tokens_computed());
  const std::span<const TokenId> written = drafted.written_;
  // The last token has no row: it is what the next launch begins with.
  const std::size_t most = std::min(written.size(), behind.size() - 1);
  std::size_t accepted = 0;
  while (accepted < most && written[accepted] == behind[accepted]) ++accepted;
  cache_.commit(*drafted.sequence_, behind.first(accepted));
  drafted.written_.clear();
}

// Makes room for so many tokens in all.
bool DraftModel::reserve(DraftedSequence& drafted, std::uint64_t tokens) {
  do {
    auto reserved = cache_.reserve(*drafted.sequence_, tokens);
    if (auto* const copies = std::get_if<std::vector<kv::Copy>>(&reserved)) {
      copies_.insert(copies_.end(), copies->begin(), copies->end());
      return true;
    }
  } while (close_idle());
  return false;
}

// Closes the sequence that was not drafted for longest. What it has computed can be evicted then.
// False: all are in use.
bool DraftModel::close_idle() {
  DraftedSequence* idle = nullptr;
  for (DraftedSequence* const drafted : sequences_) {
    if (!drafted->sequence_ || drafted->step_ == step_) continue;
    if (idle == nullptr || drafted->step_ < idle->step_) idle = drafted;
  }
  if (idle == nullptr) return false;
  idle->sequence_.reset();
  idle->written_.clear();
  return true;
}

// All blocks are held by sequences that are drafted for: this one leaves them its own for a while.
void DraftModel::give_up(DraftedSequence& drafted) {
  drafted.sequence_.reset();
  drafted.written_.clear();
  drafted.looks_to_skip_ = kLooksSkipped;
}

void DraftModel::draft(std::span<Job> jobs, std::uint64_t catch_up_tokens, const Clock& clock) {
  ++step_;
  for (const Job& job : jobs) job.drafted->step_ = step_;
  feed_missing(jobs, catch_up_tokens);
  while (!fed_.empty()) {
    const std::int64_t began = clock.now_ns();
    const bool is_usual = launch();
    const double took = seconds_between(began, clock.now_ns());
    if (!is_usual) continue;
    std::uint64_t tokens = 0;
    for (const LaunchRows& rows : rows_) tokens += rows.rows;
    if (tokens == samples_.size()) {
      costs_.note(static_cast<std::uint32_t>(tokens), took);
      is_measured_ = costs_.is_measured();
      steps_unmeasured_ = 0;
    } else if (tokens >= catch_up_tokens_min_) {
      const double each = took / static_cast<double>(tokens);
      missing_token_seconds_ =
          missing_token_seconds_ == 0
              ? each
              : missing_token_seconds_ + (each - missing_token_seconds_) * kNewestWeight;
    }
  }
}

// The first launch computes what is missing of every sequence, those that are drafted for first.
void DraftModel::feed_missing(std::span<Job> jobs, std::uint64_t catch_up_tokens) {
  fed_.clear();
  copies_.clear();
  std::uint64_t rows_left = options_.rows_max;
  const auto feed = [&](Job& job, std::uint64_t tokens_max) {
    const std::uint64_t first = job.drafted->sequence_->tokens_computed();
    // A draft begins behind the last token, which waits for one.
    const std::uint64_t missing = job.tokens.size() - first - (job.drafts > 0 ? 0 : 1);
    const std::uint64_t tokens = std::min({tokens_max, rows_left, missing});
    const bool samples = job.drafts > 0 && first + tokens == job.tokens.size();
    const std::uint64_t drafts = samples ? job.drafts - 1 : 0;
    if (tokens == 0) return;
    if (!reserve(*job.drafted, first + tokens + drafts)) return give_up(*job.drafted);
    fed_.push_back({&job, job.tokens.subspan(first, tokens), first, samples});
    rows_left -= tokens;
  };
  for (Job& job : jobs) {
    if (job.drafts > 0) feed(job, rows_left);
  }
  for (Job& job : jobs) {
    if (job.drafts > 0 || catch_up_tokens == 0) continue;
    const std::uint64_t before = rows_left;
    feed(job, catch_up_tokens);
    catch_up_tokens -= before - rows_left;
  }
}

// Computes what is fed, and feeds the draft tokens that come of it where more are wanted.
bool DraftModel::launch() {
  const std::size_t groups = cache_.tree().groups();
  rows_.clear();
  samples_.clear();
  tables_.clear();
  tables_.reserve(fed_.size() * groups);  // rows point into it
  std::uint32_t row = 0;
  for (const Fed& fed : fed_) {
    DraftedSequence& drafted = *fed.job->drafted;
    for (std::uint32_t group = 0; group < groups; ++group) {
      tables_.push_back(drafted.sequence_->table(group).data());
    }
    const auto count = static_cast<std::uint32_t>(fed.tokens.size());
    rows_.push_back({.handle = &drafted,
                     .rows = count,
                     .first_position = fed.first,
                     .tokens = fed.tokens,
                     .tables = std::span(tables_).last(groups)});
    row += count;
    if (!fed.samples) continue;
    samples_.push_back({.handle = &drafted,
                        .row = row - 1,
                        .position = fed.first + count,
                        .sampling = &*fed.job->sampling});
  }
  runner_.launch({.copies = copies_, .rows = rows_, .samples = samples_, .scores = {}});
  const Collected collected = runner_.collect();
  for (const kv::Copy& copy : copies_) cache_.copied(copy);
  copies_.clear();
  std::vector<Fed> done = std::exchange(fed_, {});
  std::size_t sample = 0;
  for (std::size_t i = 0; i < done.size(); ++i) {
    const Result<SampledToken>* const sampled =
        done[i].samples ? &collected.samples[sample++] : nullptr;
    const bool is_finite = collected.nonfinite.empty() || collected.nonfinite[i] == 0;
    take(done[i], sampled, is_finite && collected.lost == nullptr);
  }
  return collected.lost == nullptr && !collected.was_slowed;
}

// Rows that are not numbers are no rows: they are computed again, or never.
void DraftModel::take(const Fed& fed, const Result<SampledToken>* sample, bool is_finite) {
  if (!is_finite) return;
  Job& job = *fed.job;
  DraftedSequence& drafted = *job.drafted;
  if (job.drafts > 0) {
    drafted.written_.insert(drafted.written_.end(), fed.tokens.begin(), fed.tokens.end());
  } else {
    cache_.commit(*drafted.sequence_, fed.tokens);
  }
  if (sample == nullptr || !sample->ok() || sample->value().ends_grammar) return;
  const TokenId token = sample->value().token;
  job.draft->push_back(token);
  const SamplingState& state = *job.sampling;
  const bool ends = state.stop_criteria().after(token, state.generated()).has_value();
  if (ends || job.draft->size() == job.drafts) return;
  fed_.push_back(
      {&job, std::span(*job.draft).last(1), job.tokens.size() + job.draft->size() - 1, true});
}

std::uint64_t DraftModel::tokens_in(double seconds) const {
  if (missing_token_seconds_ == 0) return catch_up_tokens_min_;
  const auto tokens = static_cast<std::uint64_t>(seconds / missing_token_seconds_);
  return std::max(tokens, catch_up_tokens_min_);
}

}  // namespace pagoda::engine
