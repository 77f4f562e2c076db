#include "sim/engine_sim.h"

#include <fmt/format.h>
#include <fmt/ostream.h>

#include <algorithm>
#include <array>
#include <optional>

#include "sim/page_oracle.h"
#include "sim/sim_draft_model.h"
#include "sim/sim_drafter.h"
#include "sim/sim_setup.h"
#include "sim/toy_watch.h"

namespace pagoda::sim {
namespace {

using engine::FinishReason;

std::string text_of(std::span<const TokenId> tokens) {
  std::string text;
  for (const TokenId token : tokens) text += fmt::format("{} ", token.value());
  return text;
}

// Witness gathers the replies of a request and compares them with the expected ones.
class Witness final : public engine::ReplySink {
 public:
  Witness(const engine::Request& request, std::uint64_t number, std::uint64_t tokens_max,
          std::optional<TokenId> last_token, const ToyModel& model, std::uint32_t block_tokens)
      : request_(request),
        number_(number),
        answers_(request.sampling.n),
        findable_(request.prompt.size() - 1) {
    const kv::KvPolicy policy = request.kv_policy.value_or(kv::KvPolicy{});
    const kv::SequenceLengths longest = {request.prompt.size(), tokens_max};
    drops_ = policy.selects_pages() && policy.tokens_dropped(longest, block_tokens) > 0;
    if (drops_) findable_ = std::min(findable_, policy.first_observed(request.prompt.size()));
    for (std::uint32_t i = 0; i < request.sampling.n; ++i) {
      if (request.action == engine::CacheAction::kNone) {
        truth_.push_back(model.generate_single(request.prompt, i, tokens_max,
                                               request.kv_policy.value_or(kv::KvPolicy{}),
                                               block_tokens));
      } else {
        truth_.emplace_back();  // nothing is computed
      }
    }
    unwatched_ = truth_;
    for (std::vector<TokenId>& truth : truth_) {
      if (last_token) truth.resize(tokens_watched(truth, *last_token), TokenId(0));
    }
  }

  // Some readers do not keep up, now and then.
  bool wants_more() const override { return number_ % 5 != 0 || ++looks_ / 3 % 2 == 0; }

  void on_prompt_logprobs(std::span<const engine::TokenScore> scores) override {
    for (const engine::TokenScore& score : scores) scored_.push_back(score.chosen.token);
  }

  void on_token(std::uint32_t answer, const engine::OutputToken& chosen) override {
    Given& given = answers_[answer];
    if (given.reason) fail(answer, "a token after its end");
    given.tokens.push_back(chosen.token);
    const auto& truth = truth_[answer];
    const std::size_t at = given.tokens.size() - 1;
    if (at >= truth.size() || truth[at] != chosen.token) {
      fail(answer, fmt::format("got {}, alone it is {}", text_of(given.tokens), text_of(truth)));
    }
    if (chosen.ends != (chosen.token == ToyModel::kEnd)) fail(answer, "a wrong end");
  }

  void on_finish(std::uint32_t answer, FinishReason reason, const engine::SequenceRecord& record,
                 const std::string&) override {
    Given& given = answers_[answer];
    if (given.reason) fail(answer, "ended twice");
    given.reason = reason;
    preemptions_ += record.preemptions;
    ran_ = ran_ || record.started_ns > 0;
    tokens_cached_ += record.prompt_tokens_cached;
    tokens_loaded_ += record.load.tokens_loaded();
    const bool whole = reason == FinishReason::kStop || reason == FinishReason::kLength ||
                       reason == FinishReason::kContext;
    answers_whole_ += whole ? 1 : 0;
    texts_ended_ += whole && given.tokens.size() < unwatched_[answer].size() ? 1 : 0;
    if (answer == 0 && record.retain) retain_ = *record.retain;
    if (whole && request_.retain && !record.retain) fail(answer, "retain: no answer to it");
    if (record.retain && record.retain->tokens > request_.retain->tokens) {
      fail(answer, "more was retained than was asked for");
    }
    if (whole && given.tokens != truth_[answer]) fail(answer, "ended before its end");
    if (record.explanation.has_value() != (request_.explain && record.started_ns != 0)) {
      fail(answer, "explained unasked, or not");
    }
    if (record.explanation) check_reason(answer, record);
    if (record.output_tokens != given.tokens.size()) fail(answer, "tokens miscounted");
    if (whole && request_.sampling.prompt_logprobs) {
      const auto rest = std::span(request_.prompt).subspan(1);
      if (!std::equal(scored_.begin(), scored_.end(), rest.begin(), rest.end())) {
        fail(answer, "prompt scores are not those of the prompt");
      }
      if (record.prompt_tokens_cached > 0) fail(answer, "scores from the cache");
    }
  }

  // Gives what the sequences will be to the drafter, with what would follow the end of their text,
  // and what of it may be in the cache to `known`: the last token of a sequence is never computed.
  void announce(SimDrafter& drafter, PrefixSet& known) const {
    for (const std::vector<TokenId>& output : unwatched_) {
      std::vector<TokenId> all = request_.prompt;
      all.insert(all.end(), output.begin(), output.end());
      drafter.expect(std::move(all));
    }
    for (const std::vector<TokenId>& truth : truth_) {
      std::vector<TokenId> all = request_.prompt;
      all.insert(all.end(), truth.begin(), truth.end());
      Digest row = ToyModel::start(request_.kv_policy.value_or(kv::KvPolicy{}).attention());
      for (std::size_t i = 0; i + (truth.empty() ? 0 : 1) < all.size(); ++i) {
        known.insert(row = ToyModel::row(row, all[i]));
      }
    }
  }

  bool ended() const {
    return std::all_of(answers_.begin(), answers_.end(),
                       [](const Given& given) { return given.reason.has_value(); });
  }
  bool ran() const { return ran_; }
  // Tokens of the prompt that may be found: a policy that will drop pages observes the last ones.
  std::uint64_t findable() const { return findable_; }
  std::uint64_t drops() const { return drops_ ? answers_whole_ : 0; }
  const std::string& failure() const { return failure_; }
  std::uint64_t preemptions() const { return preemptions_; }
  std::uint64_t tokens_cached() const { return tokens_cached_; }
  std::uint64_t tokens_loaded() const { return tokens_loaded_; }
  std::uint64_t answers_whole() const { return answers_whole_; }
  std::uint64_t texts_ended() const { return texts_ended_; }
  const std::optional<engine::RetainOutcome>& retain() const { return retain_; }
  const auto& reasons() const { return reasons_; }

 private:
  struct Given {
    std::vector<TokenId> tokens;
    std::optional<FinishReason> reason;
  };

  void check_reason(std::uint32_t answer, const engine::SequenceRecord& record) {
    const kv::Explanation& why = *record.explanation;
    if (why.tokens_matched != record.prompt_tokens_cached) fail(answer, "another match explained");
    if (why.tokens_reachable < why.stops_at() || why.tokens_reachable >= why.prompt_tokens) {
      fail(answer, "explained a reach beyond the prompt");
    }
    const bool scored = request_.sampling.prompt_logprobs && why.prompt_tokens > 1;
    if ((why.reason == kv::MissReason::kPromptLogprobs) != scored &&
        why.reason != kv::MissReason::kSharingOff) {
      fail(answer, "a wrong reason where the whole prompt is computed");
    }
    ++reasons_[static_cast<std::size_t>(why.reason)];
  }

  void fail(std::uint32_t answer, const std::string& what) {
    if (failure_.empty()) failure_ = fmt::format("request {} answer {}: {}", number_, answer, what);
  }

  engine::Request request_;
  std::uint64_t number_;
  mutable std::uint64_t looks_ = 0;
  std::vector<std::vector<TokenId>> truth_;
  std::vector<std::vector<TokenId>> unwatched_;  // the same where nobody watched the text
  std::vector<Given> answers_;
  std::uint64_t findable_;
  bool drops_ = false;
  std::vector<TokenId> scored_;
  std::string failure_;
  bool ran_ = false;
  std::uint64_t preemptions_ = 0;
  std::uint64_t tokens_cached_ = 0;
  std::uint64_t tokens_loaded_ = 0;
  std::uint64_t answers_whole_ = 0;
  std::uint64_t texts_ended_ = 0;
  std::optional<engine::RetainOutcome> retain_;
  std::array<std::uint64_t, kv::kMissReasons> reasons_ = {};
};

class Simulation {
 public:
  Simulation(const SimOptions& options)
      : options_(options),
        setup_(draw_setup(options.seed)),
        dice_(options.seed + 0x5117u),
        cache_(setup_.cache),
        runner_(setup_.model, setup_.cache.blocks, setup_.cache.block_tokens,
                setup_.launches_ahead),
        drafter_(options.seed + 0xD4AFu, setup_.model.vocabulary) {
    clock_.advance_ns(1);  // 0 stands for never
    runner_.sabotage(options.sabotage);
    for (std::size_t i = 0; i < setup_.tenants.size(); ++i) {
      tenants_.add(fmt::format("tenant {}", i + 1), setup_.tenants[i]);
    }
    for (const SimStoreOptions& store : setup_.stores) {
      stores_.push_back(std::make_unique<SimStore>(store, options.seed + stores_.size(), clock_));
      stores_.back()->sabotage(options.store_sabotage);
      setup_.core.tiers.stores.push_back(stores_.back().get());
    }
    setup_.core.tiers.page_at = [this](kv::BlockId block) { return runner_.page(block); };
    setup_.core.tiers.owner_tag = [](kv::OwnerId owner) {
      return kv::OwnerTag{{static_cast<std::byte>(owner.value() + 1)}};
    };
    if (setup_.drafts) setup_.core.drafter = &drafter_;
    runner_.set_drafts_max(speculate::kDraftTokensMax);
    if (setup_.draft_model_blocks > 0) {
      setup_.core.draft_model = &draft_model_.emplace(setup_).model();
    }
    core_.emplace(setup_.core, cache_, tenants_, runner_, clock_);
  }

  ~Simulation() {
    for (const auto& store : stores_) store->hurry();
  }

  SimOutcome run() {
    SimOutcome outcome;
    constexpr std::uint64_t kStepsMax = 50000;
    std::size_t next = 0;
    trace_setup();
    while (outcome.failure.empty()) {
      while (next < setup_.requests.size() && setup_.requests[next].arrival_ns <= clock_.now_ns()) {
        arrive(next++);
      }
      cancel_due();
      change_limits_due();
      remove_tenant_due(outcome);
      if (!space_known_ && clock_.now_ns() >= setup_.space_known_ns) {
        space_known_ = true;
        core_->set_space({});
      }
      // Idle blocks are evicted, as in a restart: then only tiers have them.
      if (!stores_.empty() && dice_.one_in(6)) cache_.clear();
      const bool worked = core_->step();
      const bool moving = core_->awaits_pages();
      spoil_free_blocks(cache_, runner_);
      if (draft_model_) draft_model_->spoil_free();
      core_->check();
      trace_step(worked);
      outcome.failure = failure();
      const bool stands = !worked && !moving && !is_removing() && core_->sequences_paused() == 0;
      if (stands && core_->requests_open() > 0) outcome.failure = "stands still with work to do";
      if (stands && next == setup_.requests.size()) break;
      outcome.pauses += core_->sequences_paused();
      if (++outcome.steps > kStepsMax) outcome.failure = "does not come to an end";
      clock_.advance_ns(static_cast<std::int64_t>(
          dice_.between(1, static_cast<std::uint64_t>(setup_.step_ns_max))));
      if (stands && clock_.now_ns() < setup_.requests[next].arrival_ns) {
        clock_.advance_ns(setup_.requests[next].arrival_ns - clock_.now_ns());
      }
    }
    if (outcome.failure.empty()) outcome.failure = failure_at_the_end();
    if (outcome.failure.empty()) outcome.failure = failure_after_a_stop();
    count(outcome);
    return outcome;
  }

 private:
  void arrive(std::size_t index) {
    const auto& [arrival_ns, cancel_ns, request, last_token] = setup_.requests[index];
    const sched::TenantLimits& limits = tenants_[request.tenant].limits;
    const Status checked = engine::check_request(request, setup_.core.limits, limits);
    trace(fmt::format("request {} arrives: prompt {}, n {}, tenant {}, priority {}, {}{}", index,
                      text_of(request.prompt), request.sampling.n, request.tenant.value(),
                      request.priority, request.kv_policy.value_or(kv::KvPolicy{}).name(),
                      checked.ok() ? "" : " — " + checked.error().message));
    if (!checked.ok()) return;
    // A tenant that was removed and stays away leaves nothing.
    if (removal_ == Removal::kEnded && request.tenant == kRemoved) return;
    const std::uint64_t context = engine::context_of(request, setup_.core.limits, limits);
    auto witness = std::make_shared<Witness>(request, index, context, last_token, setup_.model,
                                             setup_.cache.block_tokens);
    witnesses_.emplace(index, witness);
    witness->announce(drafter_, known_);
    engine::Request watched = request;
    if (last_token) watched.watch = std::make_shared<ToyWatch>(*last_token, request.sampling.n);
    core_->submit(engine::RequestId(index), std::move(watched), witness);
  }

  void cancel_due() {
    for (const auto& [index, witness] : witnesses_) {
      const std::int64_t due = setup_.requests[index].cancel_ns;
      if (due == 0 || due > clock_.now_ns() || witness->ended()) continue;
      trace(fmt::format("request {} is cancelled", index));
      core_->cancel(engine::RequestId(index));
    }
  }

  void change_limits_due() {
    const auto& changes = setup_.limit_changes;
    for (; next_change_ < changes.size() && changes[next_change_].at_ns <= clock_.now_ns();
         ++next_change_) {
      tenants_.change(changes[next_change_].tenant, changes[next_change_].limits);
    }
  }

  bool is_removing() const { return removal_ == Removal::kBegun || removal_ == Removal::kGone; }

  // Each act of the removal has a step of its own: much happens between the acts.
  void remove_tenant_due(SimOutcome& outcome) {
    const kv::OwnerId owner(kRemoved.value());
    if (removal_ == Removal::kNone) {
      if (setup_.removal_ns == 0 || clock_.now_ns() < setup_.removal_ns) return;
      core_->begin_removal(owner);
      removal_ = Removal::kBegun;
      ++outcome.removals;
      outcome.removals_late += core_->removal_may_go_on(owner) ? 0 : 1;
    } else if (removal_ == Removal::kBegun) {
      if (!core_->removal_may_go_on(owner)) return;
      for (const auto& store : stores_) {
        outcome.pages_removed += store->remove(setup_.core.tiers.owner_tag(owner)).value().pages;
      }
      removal_ = Removal::kGone;
    } else if (removal_ == Removal::kGone) {
      core_->end_removal(owner);
      removal_ = Removal::kEnded;
    }
  }

  // Describes what is left of a removed tenant that others than its running requests could find.
  std::string left_of_removed() const {
    if (removal_ != Removal::kEnded) return {};
    const kv::OwnerId owner(kRemoved.value());
    for (const auto& store : stores_) {
      if (store->has_pages_of(setup_.core.tiers.owner_tag(owner))) {
        return "a tier has pages of a tenant that was removed";
      }
    }
    const kv::SaltTable& salts = cache_.salts();
    for (std::uint32_t i = 1; i < salts.numbers(); ++i) {
      const kv::SaltId salt(i);
      if (salts.owner(salt) != owner || salts.is_retired(salt)) continue;
      if (salts.blocks_charged(salt) > 0) return "the pool has blocks of a removed tenant";
    }
    return {};
  }

  // A clean stop writes everything that is worth it.
  std::string failure_after_a_stop() {
    if (removal_ != Removal::kEnded) return {};
    if (cache_.salts().blocks_retired(kv::OwnerId(kRemoved.value())) > 0) {
      return "blocks of a tenant that was removed stay";
    }
    core_->offload_all();
    for (int i = 0; i < 20000 && core_->move_pages(); ++i) clock_.advance_ns(1000);
    return left_of_removed();
  }

  std::string failure() {
    const std::vector<bool> touched = runner_.blocks_touched();
    for (std::uint32_t i = 0; i < touched.size(); ++i) {
      const kv::BlockState state = cache_.pool().state(kv::BlockId(i));
      const bool reusable = state == kv::BlockState::kFree || state == kv::BlockState::kIdle;
      if (touched[i] && reusable) return fmt::format("block {} is reusable while in use", i);
    }
    for (const auto& [index, witness] : witnesses_) {
      if (!witness->failure().empty()) return witness->failure();
    }
    if (const std::string left = left_of_removed(); !left.empty()) return left;
    // A broken page is to be seen in a sequence: under sabotage the sequences alone must tell.
    const bool sabotaged =
        options_.sabotage != Sabotage::kNone || options_.store_sabotage != StoreSabotage::kNone;
    if (sabotaged) return {};
    std::string wrong = wrong_page(cache_, runner_);
    if (wrong.empty() && draft_model_) wrong = draft_model_->wrong_page();
    return wrong.empty() ? unasked_node(cache_, known_) : wrong;
  }

  // The check comes long after the last request: every grant has ended.
  std::string failure_at_the_end() {
    clock_.advance_ns(setup_.retain_ns_max);
    for (std::uint32_t i = 0; i <= setup_.cache.blocks / 64; ++i) core_->step();
    if (cache_.retention().blocks() > 0) return "what was retained never ends";
    return curve_failure();
  }

  // Every request that ran looked its prompt up once, however often it was preempted.
  std::string curve_failure() const {
    if (!setup_.cache.live_curve || !setup_.cache.share) return "";
    std::uint64_t asked = 0;
    for (const auto& [index, witness] : witnesses_) {
      const engine::Request& request = setup_.requests[index].request;
      if (!witness->ran() || request.sampling.prompt_logprobs) continue;
      asked += witness->findable() / setup_.cache.block_tokens;
    }
    if (cache_.curve().blocks_asked() == asked) return "";
    return fmt::format("the curve counted {} blocks asked for, not {}",
                       cache_.curve().blocks_asked(), asked);
  }

  void count(SimOutcome& outcome) const {
    for (const auto& [index, witness] : witnesses_) {
      outcome.answers += setup_.requests[index].request.sampling.n;
      outcome.forks += setup_.requests[index].request.sampling.n - 1;
      outcome.answers_whole += witness->answers_whole();
      outcome.texts_ended += witness->texts_ended();
      outcome.preemptions += witness->preemptions();
      outcome.answers_dropping += witness->drops();
      outcome.dropping_preemptions += witness->drops() > 0 ? witness->preemptions() : 0;
      outcome.tokens_cached += witness->tokens_cached();
      outcome.tokens_loaded += witness->tokens_loaded();
      for (std::size_t i = 0; i < kv::kMissReasons; ++i) {
        outcome.reasons[i] += witness->reasons()[i];
      }
      if (witness->retain()) {
        ++(witness->retain()->refused.empty() ? outcome.retained : outcome.retain_refused);
      }
      if (outcome.failure.empty() && !witness->ended()) {
        outcome.failure = fmt::format("request {} never ended", index);
      }
    }
    const engine::DraftCounts& drafts = core_->counters().drafts;
    outcome.drafts = drafts.drafts;
    outcome.draft_tokens = drafts.tokens;
    outcome.drafts_accepted = drafts.accepted;
    outcome.timed = setup_.core.scheduler.itl_target_s > 0 &&
                    core_->scheduler().step_costs().seconds({.tokens = 1}) > 0;
    using speculate::DraftMethod;
    const bool only_model =
        setup_.core.speculation.methods == speculate::MethodSet(DraftMethod::kDraftModel);
    if (only_model) outcome.model_drafts_accepted = drafts.accepted;
    outcome.sabotaged = runner_.sabotaged();
    for (const auto& store : stores_) {
      outcome.pages_read += store->pages_read();
      outcome.pages_written += store->pages_written();
      outcome.tier_faults += store->faults();
      outcome.sabotaged = outcome.sabotaged || store->sabotaged();
    }
  }

  void trace(const std::string& line) const {
    if (options_.trace != nullptr) *options_.trace << line << '\n';
  }
  void trace_setup() const {
    const auto& scheduler = setup_.core.scheduler;
    trace(fmt::format(
        "seed {}: {} blocks of {} tokens, {} groups, {} sequences, {} rows a step, "
        "{} launches ahead, context {}, sharing {}",
        options_.seed, setup_.cache.blocks, setup_.cache.block_tokens, setup_.model.groups.size(),
        scheduler.sequences_max, scheduler.batched_tokens_max, setup_.launches_ahead,
        setup_.core.limits.context_tokens, setup_.cache.share));
  }
  void trace_step(bool worked) const {
    if (options_.trace == nullptr || !worked) return;
    std::string line =
        fmt::format("{:>8} ns: {} blocks available, {} waiting, running", clock_.now_ns(),
                    cache_.blocks_available(), core_->scheduler().tasks_waiting());
    for (const sched::SequenceTask* const task : core_->scheduler().running()) {
      const auto& answer = static_cast<const engine::OpenSequence&>(*task);
      line += fmt::format(" {}.{}({}/{})", answer.request->id.value(), answer.index,
                          task->tokens_computed(), task->length());
    }
    trace(line);
  }

  enum class Removal : std::uint8_t { kNone, kBegun, kGone, kEnded };
  static constexpr sched::TenantId kRemoved{1};

  SimOptions options_;
  SimSetup setup_;
  Dice dice_;
  ManualClock clock_;
  kv::Cache cache_;
  sched::TenantTable tenants_;
  ToyRunner runner_;
  SimDrafter drafter_;
  PrefixSet known_;  // prefixes of all sequences
  std::vector<std::unique_ptr<SimStore>> stores_;
  bool space_known_ = false;
  Removal removal_ = Removal::kNone;
  std::size_t next_change_ = 0;  // index of the next limit change
  std::map<std::size_t, std::shared_ptr<Witness>> witnesses_;
  std::optional<SimDraftModel> draft_model_;
  std::optional<engine::Core> core_;
};

}  // namespace

SimOutcome simulate(const SimOptions& options) { return Simulation(options).run(); }

}  // namespace pagoda::sim
