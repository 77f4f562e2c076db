#include "serve/kv_quality_watch.h"

#include <fmt/format.h>

#include <chrono>
#include <cstdio>
#include <optional>
#include <utility>
#include <vector>

#include "base/byte_size.h"
#include "engine/backends/kv_budget.h"
#include "eval/measure.h"
#include "process/child_process.h"
#include "process/command_words.h"
#include "process/idle_process.h"
#include "serve/eval_command.h"
#include "serve/kv_verdicts.h"
#include "terminal/messages.h"

namespace pagoda::serve {
namespace {

// Seconds of work in idle time, and what a measurement is told so that it ends before them.
constexpr std::chrono::milliseconds kIdleWorkMax{60'000};
constexpr double kIdleTimeLimit = 50;
// From the start of a measurement to its end, halted time included.
constexpr std::chrono::minutes kIdleWallMax{30};
// Weights are packed once more beside those that are served.
constexpr std::uint64_t kMeasuringBytesSpare = std::uint64_t{512} << 20;

// Weights in device memory: a GPU computes.
bool is_on_gpu(const engine::Backend& backend) { return backend.weights_digest().has_value(); }

void say(const std::string& line) {
  fmt::print("{}\n", line);
  std::fflush(stdout);
}

// An error where a second copy of the weights does not fit beside what is served.
Status check_memory(const app::ServedSource& source) {
  std::uint64_t needed = kMeasuringBytesSpare;
  for (const gguf::OpenedPart& part : source.parts()) needed += 2 * part.state.bytes;
  const Result<std::uint64_t> free = engine::memory_available();
  if (!free.ok() || free.value() >= needed) return ok_status();
  return Error{ErrorCode::kExhausted,
               fmt::format("a measurement takes about {} of memory, and {} are free",
                           format_byte_size(static_cast<double>(needed)),
                           format_byte_size(static_cast<double>(free.value())))};
}

}  // namespace

Result<std::unique_ptr<engine::Backend>> create_admitted_backend(
    const ServeOptions& options, const app::ServedSource& source,
    const engine::BackendOptions& sizes) {
  ASSIGN_OR_RETURN(std::unique_ptr<engine::Backend> backend,
                   source.create_backend(options.device, sizes));
  const std::string configuration = kv_configuration(options, *backend, options.kv_policy);
  if (options.kv_quality_gate != eval::GateMode::kRefuse ||
      !is_gated(options, source, configuration)) {
    return backend;
  }
  const app::VerdictKey key = kv_key(options, *backend, options.kv_policy);
  const std::atomic<bool> stop{false};
  ASSIGN_OR_RETURN(const std::string model, model_fingerprint(source, stop));
  std::optional<eval::Measurement> measured = find_verdict(model, key);
  if (!measured || !measured->has_verdict()) {
    std::vector<std::string> words = quick_eval_words(options, configuration);
    const std::string command = process::shell_line(words);
    say(fmt::format("KV {}: measuring its quality first: {}", configuration, command));
    backend.reset();  // the measurement needs the memory
    words.front() = process::own_program();
    ASSIGN_OR_RETURN(const int exit_status, process::run_child(words));
    measured = find_verdict(model, key);
    if (!measured) {
      return Error{ErrorCode::kUnsupported,
                   fmt::format("`kv_quality_gate=refuse`: the quality of KV {} could not be "
                               "measured (status {}): {}",
                               configuration, exit_status, command)};
    }
    ASSIGN_OR_RETURN(backend, source.create_backend(options.device, sizes));
  }
  const std::string reason = eval::reason_against(*measured);
  if (reason.empty()) return backend;
  return Error{ErrorCode::kUnsupported,
               fmt::format("`kv_quality_gate=refuse`: KV {}: {}", configuration, reason)};
}

KvQualityWatch::KvQualityWatch(const ServeOptions& options, const app::ServedSource& source,
                               const engine::Engine& engine, const engine::Backend& backend)
    : options_(options), source_(source) {
  const std::string configuration = kv_configuration(options, backend, options.kv_policy);
  if (!is_gated(options, source, configuration)) return;
  const eval::ServedKv kv = {.configuration = configuration,
                             .bits_per_token = eval::kv_bits_per_token(backend),
                             .tokens = backend.kv_tokens()};
  thread_ = std::thread([this, &engine, kv, key = kv_key(options, backend, options.kv_policy),
                         on_gpu = is_on_gpu(backend)] { watch(engine, kv, key, on_gpu); });
}

KvQualityWatch::~KvQualityWatch() {
  stopping_ = true;
  if (thread_.joinable()) thread_.join();
}

void KvQualityWatch::watch(const engine::Engine& engine, const eval::ServedKv& kv,
                           const app::VerdictKey& key, bool on_gpu) {
  const Result<std::string> model = model_fingerprint(source_, stopping_);
  if (!model.ok()) {
    if (!stopping_)
      terminal::print_warning(fmt::format("KV quality is unknown: {}", model.error().message));
    return;
  }
  std::optional<eval::Measurement> measured = find_verdict(model.value(), key);
  if (measured && measured->has_verdict()) return say(eval::measured_line(kv, *measured));
  say(eval::unmeasured_line(kv, process::shell_line(eval_words(options_, kv.configuration))));
  const Status outcome = measure(engine, kv.configuration, on_gpu);
  if (stopping_) return;
  measured = find_verdict(model.value(), key);
  if (measured) return say(eval::measured_line(kv, *measured));
  say(fmt::format("KV {}: its quality could not be measured beside the server: {}",
                  kv.configuration, outcome.ok() ? "nothing was kept" : outcome.error().message));
}

Status KvQualityWatch::measure(const engine::Engine& engine, const std::string& configuration,
                               bool on_gpu) {
  std::vector<std::string> words =
      idle_eval_words(options_, configuration, {.on_gpu = on_gpu, .time_limit_s = kIdleTimeLimit});
  words.front() = process::own_program();
  ASSIGN_OR_RETURN(
      const process::IdleEnd end,
      process::run_while_idle({.words = std::move(words),
                               .work_max = kIdleWorkMax,
                               .wall_max = kIdleWallMax,
                               .is_idle = [&] { return engine.is_idle(); },
                               .stopped = [this] { return stopping_.load(); },
                               .may_start = [this] { return check_memory(source_); }}));
  if (end == process::IdleEnd::kTooLong) {
    return Error{ErrorCode::kExhausted, "a minute of idle time is too short"};
  }
  if (end == process::IdleEnd::kTooBusy) {
    return Error{ErrorCode::kExhausted, "half an hour had too little idle time"};
  }
  if (end == process::IdleEnd::kFailed) return Error{ErrorCode::kIo, "pagoda eval failed"};
  return ok_status();
}

}  // namespace pagoda::serve
