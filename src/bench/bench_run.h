// How every benchmark is asked for, run and reported.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "app/device_choice.h"
#include "app/loaded_model.h"
#include "base/clock.h"
#include "base/result.h"
#include "base/thread_pool.h"
#include "engine/backends/cpu_backend.h"
#include "kernels/ops.h"
#include "kv/evict/policy.h"
#include "terminal/bench_report.h"
#include "terminal/interrupt.h"

namespace pagoda::bench {

// Which model, and how it is run. A benchmark offers those that mean something to it.
struct BenchOptions {
  std::string model = app::default_model_path();
  std::uint32_t threads = static_cast<std::uint32_t>(usable_cores());
  model::KvCacheDtype kv_cache_dtype;
  const kv::EvictionPolicy* kv_eviction = &kv::lru_policy();
  std::uint32_t repeats = 1;
  std::uint32_t batched_tokens_max = 512;
  bool json = false;
  app::DeviceOptions device = {.kind = app::DeviceKind::kCpu};  // for those that run an engine
};

// A BenchRun holds what all benchmarks need: kernels, options, a clock and the interrupt.
class BenchRun {
 public:
  BenchRun(const kernels::KernelSet& kernels, const BenchOptions& options)
      : kernels_(kernels), options_(options) {}

  const kernels::KernelSet& kernels() const { return kernels_; }
  const BenchOptions& options() const { return options_; }
  const Clock& clock() const { return clock_; }
  bool interrupted() const { return interrupt_.requested(); }
  // Returns the KV elements of the backend that was noted last; else those that the CPU would use.
  kv::memory::Elements kv_elements() const;
  // The backend that computes: settings name it.
  void note_backend(const engine::Backend& backend) const;
  // An error once Ctrl-C was pressed.
  Status check_interrupt() const;

  Result<std::unique_ptr<app::LoadedModel>> load_model() const;
  // How the model is run. An error when a step has no room for a token of each sequence.
  Result<engine::BackendOptions> backend_options(std::uint32_t sequences_max) const;
  void add_settings(terminal::BenchReport& report) const;

 private:
  const kernels::KernelSet& kernels_;
  const BenchOptions& options_;
  SteadyClock clock_;
  terminal::Interrupt interrupt_;
  mutable std::string device_name_;  // empty: no backend was noted
  mutable std::optional<kv::memory::Elements> kv_elements_;
};

}  // namespace pagoda::bench
