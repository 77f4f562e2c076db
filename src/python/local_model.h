// A model in this process behind the engine that serves: what `pagoda serve` has without a network.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "app/device_choice.h"
#include "app/loaded_model.h"
#include "app/served_source.h"
#include "base/clock.h"
#include "base/result.h"
#include "engine/backends/backend.h"
#include "engine/engine.h"
#include "server/reply_queue.h"
#include "server/served_model.h"

namespace pagoda::python {

// Names, meanings and defaults are those of the flags of `pagoda serve`.
struct LocalModelOptions {
  std::string model = app::default_model_path();
  std::string revision;
  std::string tokenizer;
  std::string chat_template;  // a file; empty: the model's own
  std::string device = "auto";
  std::string kv_cache_dtype = "auto";
  std::string kv_cache_memory_bytes;  // empty: a share of free memory
  std::string kv_eviction = "lru";
  std::string dtype = "auto";
  std::string quantization;        // empty: weights stay as they are
  std::string speculative_config;  // as app::parse_speculation reads it; empty: the default drafts
  double gpu_memory_utilization = app::kGpuMemoryUtilization;
  std::uint32_t num_gpu_blocks_override = 0;  // 0: as many as fit
  std::uint64_t max_model_len = 0;            // 0: the model's own
  std::uint32_t block_size = 16;
  // Unset: chosen by device, without a target for inter-token latency: who waits for requests that
  // were given together wants throughput.
  std::optional<std::uint32_t> max_num_seqs = {};
  std::optional<std::uint32_t> max_num_batched_tokens = {};
  std::uint32_t threads = 0;  // 0: every usable core
  bool enable_prefix_caching = true;
};

class LocalModel {
 public:
  static Result<std::shared_ptr<LocalModel>> open(const LocalModelOptions& options);
  LocalModel(const LocalModel&) = delete;
  LocalModel& operator=(const LocalModel&) = delete;

  const server::ServedModel& served() const { return *served_; }
  const engine::Backend& backend() const { return *backend_; }
  engine::Engine& engine() { return *engine_; }

 private:
  LocalModel() = default;
  Status start(const LocalModelOptions& options);

  std::unique_ptr<app::ServedSource> source_;
  std::unique_ptr<engine::Backend> backend_;
  SteadyClock clock_;
  server::StepNotifier step_notifier_;
  std::unique_ptr<engine::Engine> engine_;  // its thread uses what stands above
  std::unique_ptr<server::ServedModel> served_;
};

}  // namespace pagoda::python
