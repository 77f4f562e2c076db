#include "bench/bench_engine.h"

#include <fmt/format.h>

#include <utility>

#include "base/random.h"

namespace pagoda::bench {
namespace {

constexpr std::chrono::milliseconds kInterruptPoll{50};

Error ended_early(const TimedOutput& answer) {
  return {ErrorCode::kExhausted,
          fmt::format("a sequence ended after {} tokens ({}){}{}", answer.tokens.size(),
                      engine::finish_name(answer.reason), answer.message.empty() ? "" : ": ",
                      answer.message)};
}

}  // namespace

Result<std::unique_ptr<BenchEngine>> BenchEngine::create(const app::LoadedModel& model,
                                                         const BenchRun& run,
                                                         const engine::BackendOptions& options,
                                                         StepWatcher watcher, double memory_share) {
  engine::BackendOptions with_bar = options;
  with_bar.on_pack = model.pack_progress();
  app::DeviceOptions device = run.options().device;
  // A share of what no GPU has would read as one that was asked for.
  if (memory_share < 1 && engine::find_gpu().ok()) {
    device.gpu_memory_utilization =
        memory_share * device.gpu_memory_utilization.value_or(app::kGpuMemoryUtilization);
  }
  ASSIGN_OR_RETURN(std::unique_ptr<engine::Backend> backend,
                   app::create_backend(device, model, run.kernels(), with_bar));
  return std::unique_ptr<BenchEngine>(new BenchEngine(run, std::move(backend), std::move(watcher)));
}

std::unique_ptr<BenchEngine> BenchEngine::with_backend(const BenchRun& run,
                                                       std::unique_ptr<engine::Backend> backend) {
  return std::unique_ptr<BenchEngine>(new BenchEngine(run, std::move(backend), {}));
}

BenchEngine::BenchEngine(const BenchRun& run, std::unique_ptr<engine::Backend> backend,
                         StepWatcher watcher)
    : run_(run), backend_(std::move(backend)), watcher_(std::move(watcher)) {
  run.note_backend(*backend_);
  engine::EngineOptions options;
  options.core = backend_->core_options();
  if (watcher_) {
    options.after_step = [this] {
      const engine::Engine* const engine = watched_;
      if (engine != nullptr) watcher_(engine->snapshot());
    };
  }
  engine_ =
      std::make_unique<engine::Engine>(options, backend_->cache(), backend_->runner(), run.clock());
  watched_ = engine_.get();
}

BenchEngine::~BenchEngine() = default;

Status BenchEngine::check_room(std::uint64_t tokens) const {
  if (tokens <= backend_->kv_tokens()) return ok_status();
  return Error{ErrorCode::kOutOfRange,
               fmt::format("the benchmark holds {} tokens at once, but the KV cache has room for "
                           "{}",
                           tokens, backend_->kv_tokens())};
}

Result<PendingRequest> BenchEngine::submit(engine::Request request) {
  auto answer = std::make_shared<RecordingSink>(run_.clock());
  ASSIGN_OR_RETURN(const engine::RequestId id, engine_->submit(std::move(request), answer));
  return PendingRequest{id, std::move(answer)};
}

Status BenchEngine::wait_for_tokens(const PendingRequest& pending, std::size_t tokens) const {
  while (!pending.sink->wait_for_tokens(tokens, kInterruptPoll))
    RETURN_IF_ERROR(run_.check_interrupt());
  const TimedOutput answer = pending.sink->read();
  if (answer.tokens.size() < tokens) return ended_early(answer);
  return ok_status();
}

Result<TimedOutput> BenchEngine::finish(const PendingRequest& pending) const {
  // More tokens than any sequence has: only its end is waited for.
  while (!pending.sink->wait_for_tokens(SIZE_MAX, kInterruptPoll))
    RETURN_IF_ERROR(run_.check_interrupt());
  TimedOutput answer = pending.sink->read();
  if (answer.reason != engine::FinishReason::kLength) return ended_early(answer);
  return answer;
}

Result<TimedOutput> BenchEngine::generate(engine::Request request) {
  ASSIGN_OR_RETURN(const PendingRequest pending, submit(std::move(request)));
  return finish(pending);
}

}  // namespace pagoda::bench
