#include "app/device_choice.h"

#include <fmt/format.h>

#include <string>
#include <system_error>
#include <utility>

#include "app/ranks_backend.h"
#include "engine/backends/gpu_budget.h"
#include "model/kv_groups.h"
#include "terminal/messages.h"

namespace pagoda::app {
namespace {

#if defined(PAGODA_HAVE_CUDA)
constexpr bool kBuiltForGpus = true;
#else
constexpr bool kBuiltForGpus = false;
#endif

Result<std::unique_ptr<engine::Backend>> on_cpu(const model::Config& config,
                                                const model::Weights& weights,
                                                const kernels::KernelSet& kernels,
                                                const engine::BackendOptions& options) {
  ASSIGN_OR_RETURN(std::unique_ptr<engine::CpuBackend> backend,
                   engine::CpuBackend::create(config, weights, kernels, options));
  return std::unique_ptr<engine::Backend>(std::move(backend));
}

// On a CPU the number of blocks is said in bytes.
Result<engine::BackendOptions> with_blocks(const DeviceOptions& device, const model::Config& config,
                                           const kernels::KernelSet& kernels,
                                           engine::BackendOptions options) {
  if (!device.gpu_blocks) return options;
  RETURN_IF_ERROR(model::check_kv_cache_dtype(config, options.kv_cache_dtype));
  const kv::memory::CacheGroupPlan plan =
      model::plan_kv_groups(config, kernels, options.kv_cache_dtype, options.block_tokens);
  options.kv_bytes = *device.gpu_blocks * plan.layouts.front().page_bytes();
  return options;
}

// A share of a GPU's memory is never passed over in silence where no GPU computes.
void warn_of_gpu_share(const DeviceOptions& device) {
  if (!device.gpu_memory_utilization) return;
  terminal::print_warning(
      "`gpu_memory_utilization` bounds nothing on a CPU: `num_gpu_blocks_override` or, of a "
      "server, `kv_cache_memory_bytes` bounds its KV cache");
}

void set_steps(const StepChoice& steps, engine::BackendOptions& options) {
  options.scheduler.sequences_max = steps.sequences_max;
  options.scheduler.batched_tokens_max = steps.batched_tokens_max;
  options.scheduler.shared_step_tokens = steps.shared_step_tokens;
  options.scheduler.itl_target_s = steps.itl_target_ms * 1e-3;
}

engine::BackendOptions with_cpu_steps(const DeviceOptions& device, engine::BackendOptions options) {
  if (device.steps) set_steps(choose_steps(*device.steps, {}), options);
  return options;
}

// A GPU or options that cannot be used are told of where the backend is made.
engine::BackendOptions with_gpu_steps(const DeviceOptions& device, const model::Config& config,
                                      std::uint64_t weights_bytes, engine::BackendOptions options) {
  const Result<std::uint64_t> gpu_bytes = device.steps ? engine::find_gpu_bytes() : 0;
  if (!device.steps || !gpu_bytes.ok()) return options;
  std::uint64_t kv_token_bytes = 0;
  if (model::check_gpu_kv_cache_dtype(options.kv_cache_dtype).ok() &&
      model::check_kv_cache_dtype(config, options.kv_cache_dtype).ok()) {
    const kv::memory::CacheGroupPlan plan =
        model::plan_gpu_kv_groups(config, options.kv_cache_dtype, options.block_tokens);
    kv_token_bytes = plan.groups.size() * plan.layouts.front().page_bytes() / options.block_tokens;
  }
  const StepDevice gpu = {
      .gpu_bytes = gpu_bytes.value(),
      .memory_utilization = device.gpu_memory_utilization.value_or(kGpuMemoryUtilization),
      .weights_bytes = weights_bytes,
      .row_bytes = engine::workspace_row_bytes(config),
      .kv_token_bytes = kv_token_bytes};
  set_steps(choose_steps(*device.steps, gpu), options);
  return options;
}

engine::GpuBackendOptions gpu_options(const DeviceOptions& device) {
  return {.memory_utilization = device.gpu_memory_utilization.value_or(kGpuMemoryUtilization),
          .blocks = device.gpu_blocks};
}

}  // namespace

bool shows_nvidia_gpu(const std::filesystem::path& root) {
  std::error_code unreadable;  // is as good as not there
  return std::filesystem::exists(root / "dev/nvidia0", unreadable) ||
         std::filesystem::exists(root / "proc/driver/nvidia", unreadable);
}

bool may_run_on_gpu(const DeviceOptions& device) {
  if (device.ranks > 1 || device.kind == DeviceKind::kCpu) return false;
  return device.kind == DeviceKind::kCuda || (kBuiltForGpus && shows_nvidia_gpu());
}

namespace {

Result<std::unique_ptr<engine::Backend>> gpu_backend_or_none(
    const DeviceOptions& device, const model::Config& config, const model::Weights& weights,
    const kernels::KernelSet& kernels, const engine::BackendOptions& options) {
  if (device.ranks > 1) {
    return Error{
        ErrorCode::kUnsupported,
        fmt::format("`tensor_parallel_size` {}: this command computes on one rank", device.ranks)};
  }
  const bool may_fall_back = device.kind == DeviceKind::kAuto;
  if (device.kind == DeviceKind::kCpu) return std::unique_ptr<engine::Backend>();
  if (may_fall_back && !kBuiltForGpus) {
    if (shows_nvidia_gpu()) {
      terminal::print_warning("this program was built without CUDA; running on the CPU");
    }
    return std::unique_ptr<engine::Backend>();
  }
  auto backend = engine::create_gpu_backend(
      config, weights, kernels,
      with_gpu_steps(device, config, model::bytes_in_file(weights), options), gpu_options(device));
  const bool lacking = !backend.ok() && (backend.error().code == ErrorCode::kNotFound ||
                                         backend.error().code == ErrorCode::kUnsupported);
  if (lacking && !may_fall_back && !shows_nvidia_gpu()) {
    return Error{backend.error().code,
                 fmt::format("`device=cuda`: there is no NVIDIA driver on this machine ({})",
                             backend.error().message)};
  }
  if (!lacking || !may_fall_back) return backend;
  if (backend.error().code == ErrorCode::kUnsupported || shows_nvidia_gpu()) {
    terminal::print_warning(fmt::format("{}; running on the CPU", backend.error().message));
  }
  return std::unique_ptr<engine::Backend>();
}

}  // namespace

Result<std::unique_ptr<engine::Backend>> create_gpu_backend(const DeviceOptions& device,
                                                            const model::Config& config,
                                                            const model::Weights& weights,
                                                            const kernels::KernelSet& kernels,
                                                            const engine::BackendOptions& options) {
  ASSIGN_OR_RETURN(std::unique_ptr<engine::Backend> backend,
                   gpu_backend_or_none(device, config, weights, kernels, options));
  if (backend) return backend;
  warn_of_gpu_share(device);
  if (device.gpu_blocks) {
    terminal::print_warning(
        "`num_gpu_blocks_override` bounds nothing here: one prompt on a CPU has no KV cache of "
        "blocks");
  }
  return backend;
}

Result<std::unique_ptr<engine::Backend>> create_backend(const DeviceOptions& device,
                                                        const model::Config& config,
                                                        const model::Weights& weights,
                                                        const kernels::KernelSet& kernels,
                                                        const engine::BackendOptions& options) {
  ASSIGN_OR_RETURN(std::unique_ptr<engine::Backend> backend,
                   gpu_backend_or_none(device, config, weights, kernels, options));
  if (backend) return backend;
  warn_of_gpu_share(device);
  ASSIGN_OR_RETURN(const engine::BackendOptions sized,
                   with_blocks(device, config, kernels, with_cpu_steps(device, options)));
  return on_cpu(config, weights, kernels, sized);
}

Result<std::unique_ptr<engine::Backend>> create_backend(const DeviceOptions& device,
                                                        const LoadedModel& model,
                                                        const kernels::KernelSet& kernels,
                                                        const engine::BackendOptions& options) {
  if (device.ranks > 1) {
    warn_of_gpu_share(device);
    if (device.gpu_blocks) {
      terminal::print_warning(
          "`num_gpu_blocks_override` bounds nothing on several ranks: `kv_cache_memory_bytes` "
          "does");
    }
    return create_ranks_backend(device, model, kernels, with_cpu_steps(device, options));
  }
  return create_backend(device, model.config(), model.weights(), kernels, options);
}

Result<std::unique_ptr<engine::Backend>> create_random_backend(
    const DeviceOptions& device, const model::Config& config, const engine::RandomWeights& weights,
    const kernels::KernelSet& kernels, const engine::BackendOptions& options) {
  if (device.kind == DeviceKind::kCpu || device.ranks > 1) {
    return Error{ErrorCode::kUnsupported,
                 "`random_weights`: weights are made on a GPU; for the CPU "
                 "bench/make_random_model.py writes a file of them"};
  }
  constexpr std::uint64_t kNotKnown = 0;
  auto backend = engine::create_gpu_backend(config, weights, kernels,
                                            with_gpu_steps(device, config, kNotKnown, options),
                                            gpu_options(device));
  if (backend.ok()) return backend;
  return Error{backend.error().code, fmt::format("`random_weights`: {}", backend.error().message)};
}

}  // namespace pagoda::app
