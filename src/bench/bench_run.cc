#include "bench/bench_run.h"

#include <fmt/format.h>

#include <filesystem>

#include "app/kv_dtype.h"
#include "model/decoder.h"

namespace pagoda::bench {

Status BenchRun::check_interrupt() const {
  if (interrupted()) return Error{ErrorCode::kExhausted, "interrupted"};
  return ok_status();
}

Result<std::unique_ptr<app::LoadedModel>> BenchRun::load_model() const {
  return app::LoadedModel::load(options_.model, kernels_);
}

Result<engine::BackendOptions> BenchRun::backend_options(std::uint32_t sequences_max) const {
  if (options_.batched_tokens_max < sequences_max) {
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("`max_num_batched_tokens`: {} are fewer than the {} sequences that "
                             "run at once, each of which has a token in a step",
                             options_.batched_tokens_max, sequences_max)};
  }
  engine::BackendOptions backend;
  backend.threads = options_.threads;
  backend.kv_cache_dtype = options_.kv_cache_dtype;
  backend.kv_eviction = options_.kv_eviction;
  backend.scheduler.sequences_max = sequences_max;
  backend.scheduler.batched_tokens_max = options_.batched_tokens_max;
  backend.model_name = options_.model;
  return backend;
}

kv::memory::Elements BenchRun::kv_elements() const {
  return kv_elements_.value_or(options_.kv_cache_dtype.elements(kernels_.kv_element));
}

void BenchRun::note_backend(const engine::Backend& backend) const {
  device_name_ = backend.device_name();
  kv_elements_ = options_.kv_cache_dtype.elements(backend.page_layout().elements);
}

void BenchRun::add_settings(terminal::BenchReport& report) const {
  report.add_setting("model", std::filesystem::path(options_.model).filename().string());
  if (!device_name_.empty()) report.add_setting("device", device_name_);
  report.add_setting("threads", options_.threads);
  report.add_setting("kv_cache_dtype", app::kv_dtype_name(kv_elements()));
  report.add_setting("kv_eviction", options_.kv_eviction->name);
}

}  // namespace pagoda::bench
