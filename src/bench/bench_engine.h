// The engine as benchmarks use it: a model made ready where the options say, requests of fixed
// length, outputs with the times of their tokens.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "app/synthetic_request.h"
#include "base/result.h"
#include "base/token_id.h"
#include "bench/bench_run.h"
#include "bench/recording_sink.h"
#include "engine/backends/cpu_backend.h"
#include "engine/engine.h"

namespace pagoda::bench {

using app::fixed_request;
using app::random_prompt;

struct PendingRequest {
  engine::RequestId id;
  std::shared_ptr<RecordingSink> sink;
};

class BenchEngine {
 public:
  // Called on the engine's thread after each step.
  using StepWatcher = std::function<void(const engine::Snapshot&)>;

  // The model and the run must outlive the engine. Of a GPU's memory it takes `memory_share` of
  // what one may take: for engines that stand side by side.
  static Result<std::unique_ptr<BenchEngine>> create(const app::LoadedModel& model,
                                                     const BenchRun& run,
                                                     const engine::BackendOptions& options,
                                                     StepWatcher watcher = {},
                                                     double memory_share = 1);
  // Over a backend that is ready; the run must outlive the engine.
  static std::unique_ptr<BenchEngine> with_backend(const BenchRun& run,
                                                   std::unique_ptr<engine::Backend> backend);
  ~BenchEngine();

  const engine::Backend& backend() const { return *backend_; }
  std::uint64_t context_tokens() const { return engine_->limits().context_tokens; }
  std::uint32_t vocabulary() const { return engine_->limits().vocabulary; }
  // An error that names both numbers when the cache holds fewer tokens.
  Status check_room(std::uint64_t tokens) const;

  Result<PendingRequest> submit(engine::Request request);
  void cancel(const PendingRequest& pending) { engine_->cancel(pending.id); }
  // An error when the sequence ended before it had that many tokens, or when Ctrl-C was pressed.
  Status wait_for_tokens(const PendingRequest& pending, std::size_t tokens) const;
  // The whole output; an error when it ended otherwise than by its length.
  Result<TimedOutput> finish(const PendingRequest& pending) const;
  // One request, beginning to end.
  Result<TimedOutput> generate(engine::Request request);

 private:
  BenchEngine(const BenchRun& run, std::unique_ptr<engine::Backend> backend, StepWatcher watcher);

  const BenchRun& run_;
  std::unique_ptr<engine::Backend> backend_;
  StepWatcher watcher_;
  std::atomic<const engine::Engine*> watched_{nullptr};  // the engine, once it stands
  std::unique_ptr<engine::Engine> engine_;               // last: its thread uses the others
};

}  // namespace pagoda::bench
