#include "eval/eval.h"

#include <fmt/format.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/resource.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstdio>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "app/cache_folder.h"
#include "app/decode_traffic.h"
#include "app/machine.h"
#include "app/verdict_store.h"
#include "base/clock.h"
#include "chat/served_form.h"
#include "eval/beyond.h"
#include "eval/eval_plan.h"
#include "eval/measure.h"
#include "eval/report.h"
#include "eval/verdict_key.h"
#include "gguf/fingerprint.h"
#include "kernels/select.h"
#include "terminal/interrupt.h"
#include "terminal/messages.h"

namespace pagoda::eval {
namespace {

using EvalJson = nlohmann::ordered_json;

constexpr int kEvalInterrupted = 130;  // what shells expect after Ctrl-C
constexpr std::uint32_t kEvalStepTokens = 512;
// A part at depth is read once a configuration, and slower at its end than where speed is measured.
constexpr double kReadingShare = 0.6;
constexpr std::uint32_t kSpeedTokens = 128;

// Makes way for whoever else computes, and ends with the process that started this one.
void enter_background() {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  setpriority(PRIO_PROCESS, 0, 19);
  const sched_param none = {};
  sched_setscheduler(0, SCHED_IDLE, &none);
}

class Evaluation {
 public:
  Evaluation(const EvalOptions& options, const kernels::KernelSet& kernels,
             const app::LoadedModel& model)
      : options_(options),
        kernels_(kernels),
        model_(model),
        store_(app::VerdictStore::of_user()),
        started_ns_(clock_.now_ns()) {}

  Status run() {
    RETURN_IF_ERROR(prepare());
    ASSIGN_OR_RETURN(std::unique_ptr<engine::Backend> backend, create(options_.baseline));
    device_name_ = backend->device_name();
    if (options_.time_limit_s > 0) RETURN_IF_ERROR(fit_to_time(*backend));
    settings_ = plan_settings(plan_, document_);
    const app::VerdictKey key = key_of(options_.baseline, *backend);
    std::optional<EvalRow> baseline = kept(options_.baseline.name, key);
    std::vector<std::optional<EvalRow>> rows;
    bool all_kept = baseline.has_value();
    for (const EvalConfiguration& each : options_.configurations) {
      rows.push_back(kept(each.name, key_of(each, *backend)));
      all_kept = all_kept && rows.back().has_value();
    }
    std::unique_ptr<ReferenceLogits> reference;
    if (!all_kept) {
      RETURN_IF_ERROR(read_baseline(*backend, key, baseline, reference));
    }
    rows_.push_back(*baseline);
    backend.reset();  // before the next one takes its memory
    for (std::size_t i = 0; i < rows.size(); ++i) {
      if (!rows[i]) {
        Result<EvalRow> row = measure(options_.configurations[i], *reference);
        if (!row.ok()) {
          return Error{row.error().code,
                       fmt::format("{}: {}", options_.configurations[i].name, row.error().message)};
        }
        rows[i] = std::move(row).value();
      }
      rows_.push_back(*std::move(rows[i]));
    }
    return ok_status();
  }

  // Reads a text past the context by the baseline, as far as that goes, and by each policy.
  Status run_beyond() {
    ASSIGN_OR_RETURN(document_, read_document(options_.file));
    plan_.tokens = model_.tokenizer().encode(document_.text, {.add_bos_eos = true});
    if (plan_.tokens.size() < options_.beyond) {
      return Error{ErrorCode::kOutOfRange,
                   fmt::format("`beyond`: {} tokens, but {} has {}", options_.beyond,
                               document_.name, plan_.tokens.size())};
    }
    plan_.tokens.resize(options_.beyond);
    std::vector<EvalConfiguration> all = {options_.baseline};
    all.insert(all.end(), options_.configurations.begin(), options_.configurations.end());
    for (const EvalConfiguration& each : all) {
      plan_.depth_first = 1;
      plan_.depth_end = options_.beyond;
      ASSIGN_OR_RETURN(const std::unique_ptr<engine::Backend> backend, create(each));
      device_name_ = backend->device_name();
      const engine::RequestLimits& limits = backend->core_options().limits;
      plan_.depth_end =
          std::min(plan_.depth_end, engine::context_under(limits.kv_policy, limits) - 1);
      ASSIGN_OR_RETURN(const std::vector<float> logprobs,
                       read_logprobs(*backend, context_of(plan_, each)));
      beyond_.push_back({each.name, perplexity_by_position(logprobs)});
    }
    return ok_status();
  }
  const std::vector<BeyondRow>& beyond() const { return beyond_; }
  terminal::BenchReport beyond_report() const {
    terminal::BenchReport report = make_beyond_report(beyond_);
    report.add_setting("model", std::filesystem::path(options_.model).filename().string());
    report.add_setting("device", device_name_);
    report.add_setting("text", document_.name);
    report.add_setting("context", served_context());
    return report;
  }

  bool interrupted() const { return interrupt_.requested(); }

  terminal::BenchReport report() const {
    terminal::BenchReport report = make_report(rows_);
    report.add_setting("model", std::filesystem::path(options_.model).filename().string());
    report.add_setting("model_fingerprint", fingerprint_.substr(0, 16));
    report.add_setting("device", device_name_);
    report.add_setting("text", document_.name);
    report.add_setting("positions", fmt::format("{}-{}", plan_.depth_first, plan_.depth_end - 1));
    report.add_setting("windows", std::uint64_t{plan_.windows});
    std::vector<std::string> kept_names;
    for (const EvalRow& row : rows_) {
      if (row.kept_s > 0) kept_names.push_back(row.configuration);
    }
    if (!kept_names.empty()) report.add_setting("measured_before", kept_names);
    return report;
  }

  const std::vector<EvalRow>& rows() const { return rows_; }

 private:
  Status prepare() {
    ASSIGN_OR_RETURN(document_, read_document(options_.file));
    const std::uint64_t context = served_context();
    ASSIGN_OR_RETURN(plan_, make_plan({.depth = options_.depth,
                                       .positions = options_.positions,
                                       .windows_max = options_.quick ? 0 : options_.windows,
                                       .window_tokens = 512,
                                       .context_tokens = context},
                                      document_, model_.tokenizer()));
    if (!options_.quick) RETURN_IF_ERROR(add_tasks(context));
    const std::atomic<bool> stop{false};
    ASSIGN_OR_RETURN(
        const gguf::Fingerprint found,
        gguf::fingerprint(model_.file().opened_parts(),
                          {.memory_path = app::cache_folder() + "/fingerprints"}, stop));
    fingerprint_ = found.digest;
    return ok_status();
  }

  std::uint64_t served_context() const {
    return options_.load.context_tokens > 0 ? options_.load.context_tokens
                                            : model_.config().context;
  }

  Status add_tasks(std::uint64_t context) {
    TaskModel model = {.tokenizer = model_.tokenizer(), .context_tokens = context};
    Result<text::ChatTemplate> chat = model_.chat_template();
    if (chat.ok()) {
      chat_ = std::move(chat).value();
      model.chat = &*chat_;
      Result<chat::ServedForm> form = chat::find_served_form(*chat_, model_.tokenizer());
      if (form.ok()) {
        form_ = std::move(form).value();
        model.form = &*form_;
      }
    }
    plan_.tasks = retrieval_tasks(model, document_.text);
    ASSIGN_OR_RETURN(std::optional<Task> calls, tool_call_task(model));
    if (calls) plan_.tasks.push_back(*std::move(calls));
    return ok_status();
  }

  void apply(const EvalConfiguration& configuration, engine::BackendOptions& options) const {
    configuration.apply(options);
    options.block_tokens = options_.block_size;
  }

  Result<std::unique_ptr<engine::Backend>> create(const EvalConfiguration& configuration) const {
    engine::BackendOptions options;
    apply(configuration, options);
    options.threads = options_.threads;
    options.context_tokens = options_.beyond > 0 ? served_context() : plan_.sequence_tokens_max();
    // A policy may keep more than is read.
    options.context_tokens = std::max(
        options.context_tokens, std::min(options.kv_policy.tokens_kept_max(), served_context()));
    options.scheduler.sequences_max = 1;
    options.scheduler.batched_tokens_max = kEvalStepTokens;
    options.model_name = options_.model;
    const auto ends = model_.tokenizer().end_tokens();
    options.end_tokens.assign(ends.begin(), ends.end());
    options.on_pack = model_.pack_progress();
    // Room for one sequence and as much again of what others left to be found.
    options.kv_bytes = 2 * (options.context_tokens + options.block_tokens) *
                       app::kv_bytes_per_token(model_.config(), kv::memory::Element::kF32);
    return app::create_backend(options_.device, model_.config(), model_.weights(), kernels_,
                               options);
  }

  // Shortens the part at depth to what can be read in the time that is left.
  Status fit_to_time(engine::Backend& backend) {
    EvalPlan trial = plan_;
    trial.tokens.resize(std::min<std::size_t>(trial.tokens.size(), kSpeedTokens));
    trial.depth_end = trial.tokens.size();
    trial.depth_first = trial.depth_end / 2;
    ASSIGN_OR_RETURN(const auto scratch,
                     ReferenceLogits::create(cache_folder(), trial.positions(),
                                             backend.core_options().limits.vocabulary));
    const std::int64_t began = clock_.now_ns();
    RETURN_IF_ERROR(read_reference(backend, context_of(trial, options_.baseline), *scratch));
    const double speed = static_cast<double>(trial.depth_end) /
                         std::max(1e-6, seconds_between(began, clock_.now_ns()));
    // Loading was measured, too, and every configuration loads again.
    const auto configurations = static_cast<double>(options_.configurations.size());
    const double loading = seconds_between(started_ns_, began);
    const double left = options_.time_limit_s - loading * (1 + configurations);
    const double tokens = kReadingShare * left * speed / (1 + configurations);
    if (tokens < 3 * kPositionsMin) {
      return Error{ErrorCode::kExhausted,
                   fmt::format("`time_limit`: {:.0f} s are too short to read anything: loading "
                               "takes {:.0f} s, and {:.0f} tokens are read a second",
                               options_.time_limit_s, loading, speed)};
    }
    shorten(plan_, static_cast<std::uint64_t>(tokens));
    return ok_status();
  }

  std::string cache_folder() const { return app::cache_folder() + "/verdicts"; }

  app::VerdictKey key_of(const EvalConfiguration& configuration,
                         const engine::Backend& backend) const {
    engine::BackendOptions options;
    apply(configuration, options);
    return kv_verdict_key(configuration.name, backend.numerics_id(), options);
  }

  MeasureContext context_of(const EvalPlan& plan, const EvalConfiguration& configuration) const {
    return {.plan = plan,
            .tokenizer = model_.tokenizer(),
            .clock = clock_,
            .label = configuration.name,
            .cancelled = [this] { return interrupted(); }};
  }

  std::optional<EvalRow> kept(const std::string& name, const app::VerdictKey& key) const {
    if (options_.fresh) return std::nullopt;
    const auto found = store_.find(fingerprint_, key, settings_);
    if (!found) return std::nullopt;
    std::optional<Measurement> measured = read_measurement(found->result);
    if (!measured) return std::nullopt;
    return EvalRow{name, *std::move(measured), found->measured_s};
  }

  // A failed write is only a warning: the measurement is still shown.
  void keep(const app::VerdictKey& key, const Measurement& measured) const {
    const Status written = store_.write(fingerprint_, {.key = key,
                                                       .measured_s = std::time(nullptr),
                                                       .weight = measured.is_full() ? 1 : 0,
                                                       .settings = settings_,
                                                       .result = measurement_json(measured)});
    if (!written.ok()) {
      terminal::print_warning(
          fmt::format("figures are not kept for later: {}", written.error().message));
    }
  }

  // Reads the reference, and measures the rest of the baseline where that is not kept.
  Status read_baseline(engine::Backend& backend, const app::VerdictKey& key,
                       std::optional<EvalRow>& baseline,
                       std::unique_ptr<ReferenceLogits>& reference) {
    ASSIGN_OR_RETURN(reference, ReferenceLogits::create(cache_folder(), plan_.positions(),
                                                        backend.core_options().limits.vocabulary));
    const MeasureContext context = context_of(plan_, options_.baseline);
    ASSIGN_OR_RETURN(const std::vector<float> logprobs,
                     read_reference(backend, context, *reference));
    if (baseline) return ok_status();
    Measurement measured;
    measured.bits_per_token = kv_bits_per_token(backend);
    measured.perplexity_depth = app::perplexity_of(logprobs);
    measured.divergence = {.rows = plan_.positions(), .same_top = 1};
    RETURN_IF_ERROR(measure_rest(backend, context, nullptr, measured));
    keep(key, measured);
    baseline = EvalRow{options_.baseline.name, std::move(measured)};
    return ok_status();
  }

  Result<EvalRow> measure(const EvalConfiguration& configuration, ReferenceLogits& reference) {
    ASSIGN_OR_RETURN(const std::unique_ptr<engine::Backend> backend, create(configuration));
    const MeasureContext context = context_of(plan_, configuration);
    Measurement measured;
    measured.bits_per_token = kv_bits_per_token_read(*backend, plan_.depth_first, plan_.depth_end);
    measured.bounded_share = bounded_share(*backend, plan_);
    ASSIGN_OR_RETURN(const std::vector<float> logprobs,
                     read_compared(*backend, context, reference, measured.divergence));
    measured.perplexity_depth = app::perplexity_of(logprobs);
    RETURN_IF_ERROR(measure_rest(*backend, context, &rows_.front().measured, measured));
    keep(key_of(configuration, *backend), measured);
    return EvalRow{configuration.name, std::move(measured)};
  }

  const EvalOptions& options_;
  const kernels::KernelSet& kernels_;
  const app::LoadedModel& model_;
  const app::VerdictStore store_;
  SteadyClock clock_;
  const std::int64_t started_ns_;
  terminal::Interrupt interrupt_;
  Document document_;
  std::optional<text::ChatTemplate> chat_;
  std::optional<chat::ServedForm> form_;
  EvalPlan plan_;
  EvalJson settings_;
  std::string fingerprint_;
  std::string device_name_;
  std::vector<EvalRow> rows_;  // the baseline first
  std::vector<BeyondRow> beyond_;
};

int fail_with(const Error& error) {
  terminal::print_error(error.message);
  return error.code == ErrorCode::kInvalidArgument ? 2 : 1;
}

}  // namespace

int eval(const EvalOptions& options) {
  if (options.background) enter_background();
  const Result<const kernels::KernelSet*> kernels = kernels::select_set();
  if (!kernels.ok()) return fail_with(kernels.error());
  const auto model = app::LoadedModel::load(options.model, *kernels.value(), options.load);
  if (!model.ok()) return fail_with(model.error());
  if (options.load.context_tokens > model.value()->config().context) {
    terminal::print_warning(
        app::beyond_training(options.load.context_tokens, model.value()->config().context));
  }
  Evaluation evaluation(options, *kernels.value(), *model.value());
  const bool is_beyond = options.beyond > 0;
  const Status outcome = is_beyond ? evaluation.run_beyond() : evaluation.run();
  if (evaluation.interrupted()) {
    terminal::print_error("interrupted; what was finished is kept, and the same command goes on");
    return kEvalInterrupted;
  }
  if (!outcome.ok()) return fail_with(outcome.error());
  const terminal::BenchReport report = is_beyond ? evaluation.beyond_report() : evaluation.report();
  const terminal::BenchMachine machine = app::describe_machine(*kernels.value());
  fmt::print("{}", options.json ? report.json_text(machine, options.command_line)
                                : report.text(machine, options.command_line));
  std::fflush(stdout);
  if (options.plot.empty()) return 0;
  std::ofstream stream(options.plot, std::ios::binary);
  stream << (is_beyond ? beyond_svg(evaluation.beyond()) : quality_svg(evaluation.rows()));
  stream.close();
  if (stream) return 0;
  return fail_with({ErrorCode::kIo, fmt::format("`plot`: cannot write '{}'", options.plot)});
}

}  // namespace pagoda::eval
