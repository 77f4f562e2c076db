#include "engine/gpu_backend.h"

#include <fmt/format.h>

#include "base/assert.h"
#include "device/device.h"
#include "engine/backend_cache.h"
#include "engine/gpu_budget.h"
#include "engine/gpu_page_copier.h"
#include "engine/gpu_runner.h"
#include "kernels/cuda/ops.h"
#include "model/gpu_decoder.h"

namespace pagoda::engine {
namespace {

class GpuBackend final : public Backend {
 public:
  static Result<std::unique_ptr<Backend>> create(const model::Config& config,
                                                 model::GpuWeights weights,
                                                 std::span<const float> rope_divisors,
                                                 const kernels::KernelSet& kernels,
                                                 const device::DeviceProperties& facts,
                                                 const GpuBackendOptions& options) {
    std::unique_ptr<GpuBackend> backend(new GpuBackend(facts, options));
    RETURN_IF_ERROR(backend->open(config, std::move(weights), rope_divisors, kernels, options));
    return std::unique_ptr<Backend>(std::move(backend));
  }

  const CoreOptions& core_options() const override { return core_options_; }
  kv::Cache& cache() override { return *cache_; }
  Runner& runner() override { return *runner_; }
  const kv::memory::PageLayout& page_layout() const override { return decoder_->page_layout(); }
  std::size_t threads() const override { return pool_.threads(); }
  std::string device_name() const override { return facts_.name; }
  std::optional<std::uint64_t> weights_digest() const override {
    return decoder_->uploads_digest();
  }
  std::uint64_t kv_bytes() const override { return pages_.bytes(); }
  std::uint64_t kv_tokens() const override {
    const std::uint64_t groups = decoder_->group_plan().groups.size();
    return cache_->pool().blocks() / groups * decoder_->page_layout().block_tokens;
  }
  std::optional<std::uint64_t> context_asked() const override { return context_asked_; }

  std::string rows_id() const override {
    return fmt::format("{}.{} {}", kernels::cuda::kNumericsName, kernels::cuda::kNumericsVersion,
                       kv::memory::format_name(decoder_->page_layout()));
  }
  void use_tiers(const TierOptions& tiers) override {
    ASSERT(cache_->hashes().enabled(), "tiers know pages by name");
    core_options_.tiers = tiers;
    const std::uint64_t page_bytes = decoder_->page_layout().page_bytes();
    core_options_.tiers.page_at = [this, page_bytes](kv::BlockId block) {
      return std::span(pages_.data() + block.value() * page_bytes, page_bytes);
    };
  }
  Result<std::unique_ptr<kv::PageCopier>> create_page_copier() override {
    return GpuPageCopier::create(*runner_);
  }

 private:
  GpuBackend(device::DeviceProperties facts, const GpuBackendOptions& options)
      : facts_(std::move(facts)),
        pool_(options.shared.threads > 0 ? options.shared.threads : usable_cores()) {}

  Status open(const model::Config& config, model::GpuWeights weights,
              std::span<const float> rope_divisors, const kernels::KernelSet& kernels,
              const GpuBackendOptions& options) {
    const CpuBackendOptions& shared = options.shared;
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
    const std::uint64_t page_bytes = decoder_->page_layout().page_bytes();
    ASSIGN_OR_RETURN(const std::uint64_t bytes_free, device::gpu_bytes_free());
    ASSIGN_OR_RETURN(const std::uint32_t blocks,
                     count_blocks({.bytes_all = facts_.bytes_all,
                                   .bytes_free = bytes_free,
                                   .page_bytes = page_bytes,
                                   .memory_utilization = options.memory_utilization,
                                   .kv_bytes = shared.kv_bytes,
                                   .blocks = options.blocks}));
    ASSIGN_OR_RETURN(pages_, device::Buffer::allocate(blocks * page_bytes, "the KV cache"));
    const auto& groups = decoder_->group_plan().groups;
    kv::CacheOptions cache = cache_options(shared, blocks, groups);
    if (shared.on_deduplicate) {
      ASSIGN_OR_RETURN(join_stream_, device::Stream::create());
      cache.on_deduplicate = [this, on_deduplicate = shared.on_deduplicate](kv::BlockId mine,
                                                                            kv::BlockId existing) {
        on_deduplicate(bytes_of(mine), bytes_of(existing));
      };
    }
    cache_.emplace(cache);
    ASSIGN_OR_RETURN(runner_, GpuRunner::create(*decoder_, pages_.data(), pool_, kernels));
    const sched::BlockDemand demand = {
        .groups = groups,
        .block_tokens = shared.block_tokens,
        .chunk_tokens_max = shared.scheduler.batched_tokens_max * (runner_->launches_ahead() + 1)};
    ASSIGN_OR_RETURN(const std::uint64_t fitting,
                     fitting_context(demand, context, blocks, pages_.bytes()));
    if (fitting < context) context_asked_ = context;
    core_options_ = {.scheduler = shared.scheduler,
                     .limits = {.vocabulary = config.vocabulary,
                                .context_tokens = fitting,
                                .sequences_max = shared.scheduler.sequences_max},
                     .space = fmt::format("{} {}", shared.model_name, rows_id()),
                     .end_tokens = shared.end_tokens,
                     .tiers = {}};
    return decoder_->check_uploads();
  }

  // A page whose launch was collected.
  std::vector<std::byte> bytes_of(kv::BlockId block) {
    const std::uint64_t page_bytes = decoder_->page_layout().page_bytes();
    std::vector<std::byte> bytes(page_bytes);
    const Status copied = join_stream_->copy_to_host(
        bytes.data(), pages_.data() + block.value() * page_bytes, page_bytes);
    ASSERT(copied.ok() && join_stream_->wait().ok(), "a page of the cache can be read");
    return bytes;
  }

  device::DeviceProperties facts_;
  ThreadPool pool_;
  std::unique_ptr<model::GpuDecoder> decoder_;
  device::Buffer pages_;
  std::optional<kv::Cache> cache_;
  std::unique_ptr<GpuRunner> runner_;
  CoreOptions core_options_;
  std::optional<std::uint64_t> context_asked_;
  std::optional<device::Stream> join_stream_;  // for tests
};

}  // namespace

Result<std::string> find_gpu() {
  ASSIGN_OR_RETURN(const device::DeviceProperties facts, device::open_gpu());
  return facts.name;
}

Result<std::unique_ptr<Backend>> create_gpu_backend(const model::Config& config,
                                                    const model::Weights& weights,
                                                    const kernels::KernelSet& kernels,
                                                    const GpuBackendOptions& options) {
  ASSIGN_OR_RETURN(const device::DeviceProperties facts, device::open_gpu());
  ThreadPool pool(options.shared.threads > 0 ? options.shared.threads : usable_cores());
  ASSIGN_OR_RETURN(model::GpuWeights placed,
                   model::GpuWeights::upload(weights, pool, options.shared.on_pack));
  return GpuBackend::create(config, std::move(placed), weights.rope_frequencies, kernels, facts,
                            options);
}

Result<std::unique_ptr<Backend>> create_gpu_backend(const model::Config& config,
                                                    const RandomWeights& weights,
                                                    const kernels::KernelSet& kernels,
                                                    const GpuBackendOptions& options) {
  ASSIGN_OR_RETURN(const device::DeviceProperties facts, device::open_gpu());
  ASSIGN_OR_RETURN(model::GpuWeights placed,
                   model::GpuWeights::random(config, kernels::cuda::weight_format_of(weights.type),
                                             weights.seed));
  return GpuBackend::create(config, std::move(placed), {}, kernels, facts, options);
}

}  // namespace pagoda::engine
