#include "engine/backends/gpu_backend.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "base/assert.h"
#include "device/device.h"
#include "engine/backends/gpu_budget.h"
#include "engine/backends/gpu_page_copier.h"
#include "engine/backends/gpu_runner.h"
#include "engine/backends/paged_backend.h"
#include "kernels/cuda/ops.h"
#include "model/gpu_decoder.h"
#include "model/kv_groups.h"

namespace pagoda::engine {
namespace {

// Draft tokens of a step. The logits of each take 4 bytes for each token of the vocabulary.
constexpr std::uint32_t kDraftRowsMax = 256;

bool is_drafting(const BackendOptions& options) {
  return options.drafter != nullptr || !options.speculation.methods.empty();
}

// Makes a model's weights on the GPU out of those in host memory; the threads of the pool share the
// work.
Result<model::GpuWeights> upload_weights(const model::Weights& weights,
                                         const model::PackProgress& on_pack, ThreadPool& pool) {
  ASSIGN_OR_RETURN(const std::uint64_t packed, model::GpuWeights::packed_bytes(weights));
  ASSIGN_OR_RETURN(const std::uint64_t bytes_free, device::gpu_bytes_free());
  RETURN_IF_ERROR(check_weights_fit(
      {.packed = packed, .in_file = model::bytes_in_file(weights), .bytes_free = bytes_free}));
  return model::GpuWeights::upload(weights, pool, {.progress = on_pack});
}

// An error of the draft model is no reason to compute the model elsewhere.
Error of_draft(const Error& error) {
  const bool lacks = error.code == ErrorCode::kUnsupported || error.code == ErrorCode::kNotFound;
  return {lacks ? ErrorCode::kInvalidArgument : error.code,
          fmt::format("draft model: {}", error.message)};
}

class GpuBackend final : public PagedBackend {
 public:
  // `upload` makes the model's weights on the GPU. Weights and workspace of the draft model, too,
  // are there before the blocks that fit beside them are counted.
  template <class Upload>
  static Result<std::unique_ptr<Backend>> create(const model::Config& config, Upload&& upload,
                                                 std::span<const float> rope_divisors,
                                                 const kernels::KernelSet& kernels,
                                                 const BackendOptions& options,
                                                 const GpuBackendOptions& gpu) {
    ASSIGN_OR_RETURN(std::unique_ptr<GpuBackend> backend,
                     load(config, upload, rope_divisors, options, gpu));
    if (!options.draft_model) {
      RETURN_IF_ERROR(backend->open(config, kernels, options, gpu, 1));
      return std::unique_ptr<Backend>(std::move(backend));
    }
    const DraftModelParts& parts = *options.draft_model;
    BackendOptions made = draft_options(options, config, backend->threads());
    const auto upload_drafts = [&](ThreadPool& pool) {
      return upload_weights(*parts.weights, parts.on_pack, pool);
    };
    auto loaded = load(*parts.config, upload_drafts, parts.weights->rope_frequencies, made, gpu);
    if (!loaded.ok()) return of_draft(loaded.error());
    std::unique_ptr<GpuBackend> drafts = std::move(loaded).value();
    const kv::memory::CacheGroupPlan& draft_plan = drafts->decoder_->group_plan();
    RETURN_IF_ERROR(backend->open(config, kernels, options, gpu,
                                  share_beside(backend->decoder_->group_plan(), draft_plan)));
    made.kv_bytes = backend->bytes_for_drafts(draft_plan);
    const Status opened = drafts->open(*parts.config, kernels, made, {.graphs = gpu.graphs}, 1);
    if (!opened.ok()) return of_draft(opened.error());
    backend->use_draft_model(options, std::move(drafts));
    return std::unique_ptr<Backend>(std::move(backend));
  }

  Runner& runner() override { return *runner_; }
  std::string device_name() const override { return properties_.name; }
  std::uint64_t workspace_bytes() const override { return workspace_bytes_; }
  std::optional<std::uint64_t> weights_digest() const override {
    return decoder_->uploads_digest();
  }
  Result<std::unique_ptr<kv::PageCopier>> create_page_copier() override {
    return GpuPageCopier::create(*runner_);
  }

 private:
  GpuBackend(device::DeviceProperties properties, const BackendOptions& options)
      : PagedBackend(options), properties_(std::move(properties)) {}

  // Returns a backend whose weights and workspace are on the GPU; it has no pages yet.
  template <class Upload>
  static Result<std::unique_ptr<GpuBackend>> load(const model::Config& config, Upload&& upload,
                                                  std::span<const float> rope_divisors,
                                                  const BackendOptions& options,
                                                  const GpuBackendOptions& gpu) {
    RETURN_IF_ERROR(model::check_gpu_kv_cache_dtype(options.kv_cache_dtype));
    ASSIGN_OR_RETURN(device::DeviceProperties properties, device::open_gpu());
    const model::GpuDecoderOptions decoder = decoder_options(config, options, gpu);
    RETURN_IF_ERROR(model::GpuDecoder::check(config, decoder));
    std::unique_ptr<GpuBackend> backend(new GpuBackend(std::move(properties), options));
    ASSIGN_OR_RETURN(model::GpuWeights weights, upload(backend->pool()));
    ASSIGN_OR_RETURN(const std::uint64_t beside_weights, device::gpu_bytes_free());
    ASSIGN_OR_RETURN(backend->decoder_,
                     model::GpuDecoder::create(config, std::move(weights), rope_divisors, decoder));
    ASSIGN_OR_RETURN(const std::uint64_t left, device::gpu_bytes_free());
    backend->workspace_bytes_ = beside_weights - std::min(beside_weights, left);
    return backend;
  }

  // Opens the cache in `share` of the memory that there is for caches.
  Status open(const model::Config& config, const kernels::KernelSet& kernels,
              const BackendOptions& options, const GpuBackendOptions& gpu, double share) {
    RETURN_IF_ERROR(open_pages(options, gpu, share));
    ASSIGN_OR_RETURN(runner_, GpuRunner::create(*decoder_, pages_.data(), pool(), kernels));
    RETURN_IF_ERROR(open_core(
        config, options,
        fmt::format("{}.{}", kernels::cuda::kNumericsName, kernels::cuda::kNumericsVersion)));
    return decoder_->check_uploads();
  }

  static model::GpuDecoderOptions decoder_options(const model::Config& config,
                                                  const BackendOptions& options,
                                                  const GpuBackendOptions& gpu) {
    return {.rows_max = options.scheduler.batched_tokens_max,
            .sequences_max = options.scheduler.sequences_max,
            .draft_rows_max = is_drafting(options)
                                  ? std::min(kDraftRowsMax, options.scheduler.batched_tokens_max)
                                  : 0,
            .context_tokens = context_wanted(options, config),
            .kv_cache_dtype = options.kv_cache_dtype,
            .block_tokens = options.block_tokens,
            .graphs = gpu.graphs};
  }

  // Allocates as many blocks as fit beside weights and workspace, and opens the cache over them.
  Status open_pages(const BackendOptions& options, const GpuBackendOptions& gpu, double share) {
    const kv::memory::PageLayout& layout = decoder_->page_layout();
    ASSIGN_OR_RETURN(const std::uint64_t bytes_free, device::gpu_bytes_free());
    ASSIGN_OR_RETURN(const std::uint32_t blocks,
                     count_blocks({.bytes_all = properties_.bytes_all,
                                   .bytes_free = bytes_free,
                                   .page_bytes = layout.page_bytes(),
                                   .memory_utilization = gpu.memory_utilization,
                                   .kv_bytes = options.kv_bytes,
                                   .share = share,
                                   .blocks = gpu.blocks}));
    ASSIGN_OR_RETURN(pages_,
                     device::Buffer::allocate(blocks * layout.page_bytes(), "the KV cache"));
    OnDeduplicate on_deduplicate;
    if (options.on_deduplicate) {
      ASSIGN_OR_RETURN(fetch_stream_, device::Stream::create());
      on_deduplicate = [this, told = options.on_deduplicate](kv::BlockId mine,
                                                             kv::BlockId existing) {
        told(fetch(mine), fetch(existing));
      };
    }
    open_cache(options, decoder_->group_plan(), blocks, std::move(on_deduplicate));
    return ok_status();
  }

  std::span<std::byte> page(kv::BlockId block) override {
    const std::uint64_t page_bytes = page_layout().page_bytes();
    return {pages_.data() + block.value() * page_bytes, page_bytes};
  }

  // Returns the bytes of a page whose launch was collected.
  std::vector<std::byte> fetch(kv::BlockId block) {
    const std::span<const std::byte> from = page(block);
    std::vector<std::byte> bytes(from.size());
    const Status copied = fetch_stream_->copy_to_host(bytes.data(), from.data(), from.size());
    ASSERT(copied.ok() && fetch_stream_->wait().ok(), "a page of the cache can be read");
    return bytes;
  }

  device::DeviceProperties properties_;
  std::unique_ptr<model::GpuDecoder> decoder_;
  std::uint64_t workspace_bytes_ = 0;
  device::Buffer pages_;
  std::unique_ptr<GpuRunner> runner_;
  std::optional<device::Stream> fetch_stream_;  // for tests that compare duplicates
};

}  // namespace

Result<std::string> find_gpu() {
  ASSIGN_OR_RETURN(const device::DeviceProperties properties, device::open_gpu());
  return properties.name;
}

Result<std::uint64_t> find_gpu_bytes() {
  ASSIGN_OR_RETURN(const device::DeviceProperties properties, device::open_gpu());
  return properties.bytes_all;
}

Result<std::unique_ptr<Backend>> create_gpu_backend(const model::Config& config,
                                                    const model::Weights& weights,
                                                    const kernels::KernelSet& kernels,
                                                    const BackendOptions& options,
                                                    const GpuBackendOptions& gpu) {
  const auto upload = [&](ThreadPool& pool) {
    return upload_weights(weights, options.on_pack, pool);
  };
  return GpuBackend::create(config, upload, weights.rope_frequencies, kernels, options, gpu);
}

Result<std::unique_ptr<Backend>> create_gpu_backend(const model::Config& config,
                                                    const RandomWeights& weights,
                                                    const kernels::KernelSet& kernels,
                                                    const BackendOptions& options,
                                                    const GpuBackendOptions& gpu) {
  const auto upload = [&](ThreadPool&) {
    return model::GpuWeights::random(config, kernels::cuda::weight_format_of(weights.type),
                                     weights.seed);
  };
  return GpuBackend::create(config, upload, {}, kernels, options, gpu);
}

}  // namespace pagoda::engine
