#include "engine/gpu_machine.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/byte_size.h"
#include "device/device.h"
#include "engine/gpu_runner.h"
#include "engine/machine_cache.h"
#include "kernels/cuda/ops.h"
#include "model/gpu_decoder.h"

namespace pagoda::engine {
namespace {

class GpuMachine final : public Machine {
 public:
  static Result<std::unique_ptr<Machine>> create(const model::Config& config,
                                                 model::GpuWeights weights,
                                                 std::span<const float> rope_divisors,
                                                 const kernels::KernelSet& kernels,
                                                 const device::DeviceFacts& facts,
                                                 const GpuMachineOptions& options) {
    std::unique_ptr<GpuMachine> machine(new GpuMachine(facts, options));
    RETURN_IF_ERROR(machine->open(config, std::move(weights), rope_divisors, kernels, options));
    return std::unique_ptr<Machine>(std::move(machine));
  }

  const CoreOptions& core_options() const override { return core_options_; }
  kv::Cache& cache() override { return *cache_; }
  Runner& runner() override { return *runner_; }
  const kv::memory::PageLayout& page_layout() const override { return decoder_->page_layout(); }
  std::size_t threads() const override { return pool_.threads(); }
  std::string device_name() const override { return facts_.name; }
  std::uint64_t kv_bytes() const override { return pages_.bytes(); }
  std::uint64_t kv_tokens() const override {
    const std::uint64_t slices = decoder_->slice_plan().slices.size();
    return cache_->pool().blocks() / slices * decoder_->page_layout().block_tokens;
  }
  std::optional<std::uint64_t> context_asked() const override { return context_asked_; }

 private:
  GpuMachine(device::DeviceFacts facts, const GpuMachineOptions& options)
      : facts_(std::move(facts)),
        pool_(options.shared.threads > 0 ? options.shared.threads : usable_cores()) {}

  Status open(const model::Config& config, model::GpuWeights weights,
              std::span<const float> rope_divisors, const kernels::KernelSet& kernels,
              const GpuMachineOptions& options) {
    const CpuMachineOptions& shared = options.shared;
    const std::uint64_t context =
        shared.context_tokens > 0 ? shared.context_tokens : config.context;
    ASSIGN_OR_RETURN(decoder_,
                     model::GpuDecoder::create(
                         config, std::move(weights), rope_divisors,
                         {.rows_max = shared.scheduler.batched_tokens_max,
                          .sequences_max = shared.scheduler.sequences_max,
                          .context_tokens = context,
                          .kv_element = shared.kv_element.value_or(kv::memory::Element::kBF16),
                          .block_tokens = shared.block_tokens,
                          .graphs = options.graphs}));
    ASSIGN_OR_RETURN(const std::uint32_t blocks, count_blocks(options));
    const std::uint64_t page_bytes = decoder_->page_layout().page_bytes();
    ASSIGN_OR_RETURN(pages_, device::Buffer::allocate(blocks * page_bytes, "the KV cache"));
    const auto& slices = decoder_->slice_plan().slices;
    cache_.emplace(cache_options(shared, blocks, slices));
    ASSIGN_OR_RETURN(runner_, GpuRunner::create(*decoder_, pages_.data(), pool_, kernels));
    const sched::Footprint footprint = {
        .slices = slices,
        .block_tokens = shared.block_tokens,
        .chunk_tokens_max = shared.scheduler.batched_tokens_max * (runner_->launches_ahead() + 1)};
    ASSIGN_OR_RETURN(const std::uint64_t fitting,
                     fitting_context(footprint, context, blocks, pages_.bytes()));
    if (fitting < context) context_asked_ = context;
    core_options_ = {
        .scheduler = shared.scheduler,
        .limits = {.vocabulary = config.vocabulary,
                   .context_tokens = fitting,
                   .answers_max = shared.scheduler.sequences_max},
        .space = fmt::format("{} {}.{} {}", shared.model_name, kernels::cuda::kArithmeticName,
                             kernels::cuda::kArithmeticVersion,
                             kv::memory::format_name(decoder_->page_layout())),
        .end_tokens = shared.end_tokens,
        .tiers = {}};
    return ok_status();
  }

  // What weights and workspace leave of the share of memory that may be taken.
  Result<std::uint32_t> count_blocks(const GpuMachineOptions& options) const {
    if (options.blocks) return *options.blocks;
    ASSIGN_OR_RETURN(const std::uint64_t free_now, device::gpu_bytes_free());
    const auto wished = static_cast<double>(facts_.bytes_all) * options.memory_utilization;
    const std::uint64_t taken = facts_.bytes_all - free_now;
    const auto allowed = static_cast<std::uint64_t>(wished);
    std::uint64_t bytes = allowed > taken ? allowed - taken : 0;
    if (options.shared.kv_bytes) bytes = *options.shared.kv_bytes;
    const std::uint64_t page = decoder_->page_layout().page_bytes();
    if (bytes < page) {
      return Error{
          ErrorCode::kExhausted,
          fmt::format("--gpu-memory-utilization {}: weights and workspace take {} of the {} that "
                      "the GPU has, which leaves no block of {}",
                      options.memory_utilization, format_byte_size(static_cast<double>(taken)),
                      format_byte_size(static_cast<double>(facts_.bytes_all)),
                      format_byte_size(static_cast<double>(page)))};
    }
    return static_cast<std::uint32_t>(std::min<std::uint64_t>(bytes / page, UINT32_MAX));
  }

  device::DeviceFacts facts_;
  ThreadPool pool_;
  std::unique_ptr<model::GpuDecoder> decoder_;
  device::Buffer pages_;
  std::optional<kv::Cache> cache_;
  std::unique_ptr<GpuRunner> runner_;
  CoreOptions core_options_;
  std::optional<std::uint64_t> context_asked_;
};

}  // namespace

Result<std::string> find_gpu() {
  ASSIGN_OR_RETURN(const device::DeviceFacts facts, device::open_gpu());
  return facts.name;
}

Result<std::unique_ptr<Machine>> create_gpu_machine(const model::Config& config,
                                                    const model::Weights& weights,
                                                    const kernels::KernelSet& kernels,
                                                    const GpuMachineOptions& options) {
  ASSIGN_OR_RETURN(const device::DeviceFacts facts, device::open_gpu());
  ThreadPool pool(options.shared.threads > 0 ? options.shared.threads : usable_cores());
  ASSIGN_OR_RETURN(model::GpuWeights placed,
                   model::GpuWeights::upload(weights, pool, options.shared.on_pack));
  return GpuMachine::create(config, std::move(placed), weights.rope_frequencies, kernels, facts,
                            options);
}

Result<std::unique_ptr<Machine>> create_gpu_machine(const model::Config& config,
                                                    const RandomWeights& weights,
                                                    const kernels::KernelSet& kernels,
                                                    const GpuMachineOptions& options) {
  ASSIGN_OR_RETURN(const device::DeviceFacts facts, device::open_gpu());
  ASSIGN_OR_RETURN(
      model::GpuWeights placed,
      model::GpuWeights::random(config, kernels::cuda::form_of(weights.type), weights.seed));
  return GpuMachine::create(config, std::move(placed), {}, kernels, facts, options);
}

}  // namespace pagoda::engine
