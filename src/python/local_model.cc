#include "python/local_model.h"

#include <fmt/format.h>

#include <limits>
#include <optional>
#include <span>
#include <utility>

#include "app/draft_model.h"
#include "app/kv_dtype.h"
#include "app/mask_tokens.h"
#include "app/model_name.h"
#include "app/speculation.h"
#include "base/byte_size.h"
#include "chat/served_form.h"
#include "kernels/select.h"
#include "kv/evict/policy.h"
#include "terminal/messages.h"

namespace pagoda::python {
namespace {

Error invalid_option(std::string_view field, std::string_view message) {
  return {ErrorCode::kInvalidArgument, fmt::format("{}: {}", field, message)};
}

Result<app::DeviceOptions> device_of(const LocalModelOptions& options) {
  app::DeviceOptions made;
  if (options.device == "cpu") {
    made.kind = app::DeviceKind::kCpu;
  } else if (options.device == "cuda") {
    made.kind = app::DeviceKind::kCuda;
  } else if (options.device != "auto") {
    return invalid_option("device",
                          fmt::format("is '{}', expected auto, cpu or cuda", options.device));
  }
  if (!(options.gpu_memory_utilization >= 0.01 && options.gpu_memory_utilization <= 1)) {
    return invalid_option("gpu_memory_utilization", "is not within 0.01 and 1");
  }
  // Without a GPU the package warns of the share itself, as Python's programs can see.
  const bool may_be_gpu = made.kind == app::DeviceKind::kCuda ||
                          (made.kind == app::DeviceKind::kAuto && app::shows_nvidia_gpu());
  const bool is_asked = options.gpu_memory_utilization != app::kGpuMemoryUtilization;
  if (may_be_gpu && is_asked) made.gpu_memory_utilization = options.gpu_memory_utilization;
  if (options.num_gpu_blocks_override > 0) made.gpu_blocks = options.num_gpu_blocks_override;
  made.steps = app::StepFlags{.sequences_max = options.max_num_seqs,
                              .batched_tokens_max = options.max_num_batched_tokens,
                              .itl_target_ms = 0};
  return made;
}

Result<app::QuantizationOptions> quantization_of(const LocalModelOptions& options) {
  app::QuantizationOptions made;
  auto dtype = app::parse_dtype(options.dtype);
  if (!dtype.ok()) return invalid_option("dtype", dtype.error().message);
  made.dtype = dtype.value();
  if (options.quantization.empty()) return made;
  auto type = app::parse_quantization(options.quantization);
  if (!type.ok()) return invalid_option("quantization", type.error().message);
  made.type = type.value();
  return made;
}

Status check_sizes(const LocalModelOptions& options) {
  if (options.block_size < 1 || options.block_size > 4096) {
    return invalid_option("block_size", "is not within 1 and 4096");
  }
  const std::uint32_t sequences = options.max_num_seqs.value_or(1);
  if (sequences < 1 || sequences > 4096) {
    return invalid_option("max_num_seqs", "is not within 1 and 4096");
  }
  const std::uint32_t tokens = options.max_num_batched_tokens.value_or(2 * sequences);
  if (tokens <= sequences || tokens > (1u << 16)) {
    return invalid_option(
        "max_num_batched_tokens",
        fmt::format(
            "is {}, expected more than {}, and at most 65536", tokens,
            options.max_num_seqs ? fmt::format("max_num_seqs, which is {}", sequences) : "1"));
  }
  return ok_status();
}

Result<engine::BackendOptions> backend_options_of(const LocalModelOptions& options,
                                                  const app::ServedSource& source) {
  RETURN_IF_ERROR(check_sizes(options));
  engine::BackendOptions made;
  made.threads = options.threads;
  made.block_tokens = options.block_size;
  made.context_tokens = options.max_model_len;
  made.prefix_caching = options.enable_prefix_caching;
  made.speculation = app::default_speculation();
  if (!options.speculative_config.empty()) {
    auto speculation = app::parse_speculation(options.speculative_config);
    if (!speculation.ok()) {
      return invalid_option("speculative_config", speculation.error().message);
    }
    made.speculation = std::move(speculation).value();
  }
  made.sessions = true;
  made.kv_eviction = kv::find_policy(options.kv_eviction);
  if (made.kv_eviction == nullptr) {
    std::string names;
    for (const kv::EvictionPolicy* const policy : kv::eviction_policies()) {
      names += fmt::format("{}{}", names.empty() ? "" : ", ", policy->name);
    }
    return invalid_option("kv_eviction",
                          fmt::format("is '{}', expected {}", options.kv_eviction, names));
  }
  auto elements = app::parse_kv_dtype(options.kv_cache_dtype);
  if (!elements.ok()) return elements.error();  // it names the option
  if (elements.value()) {
    made.kv_cache_dtype.keys = elements.value()->keys;
    made.kv_cache_dtype.values = elements.value()->values;
  }
  if (!options.kv_cache_memory_bytes.empty()) {
    auto bytes = parse_byte_size(options.kv_cache_memory_bytes);
    if (!bytes.ok()) return invalid_option("kv_cache_memory_bytes", bytes.error().message);
    made.kv_bytes = bytes.value();
  }
  made.model_name = source.names().front();
  const std::span<const TokenId> ends = source.tokenizer().end_tokens();
  made.end_tokens.assign(ends.begin(), ends.end());
  return made;
}

}  // namespace

Result<std::shared_ptr<LocalModel>> LocalModel::open(const LocalModelOptions& options) {
  std::shared_ptr<LocalModel> made(new LocalModel());
  RETURN_IF_ERROR(made->start(options));
  return made;
}

Status LocalModel::start(const LocalModelOptions& options) {
  ASSIGN_OR_RETURN(const kernels::KernelSet* const kernels, kernels::select_set());
  ASSIGN_OR_RETURN(const app::DeviceOptions device, device_of(options));
  ASSIGN_OR_RETURN(app::QuantizationOptions quantization, quantization_of(options));
  ASSIGN_OR_RETURN(const std::string model, app::with_revision(options.model, options.revision));
  ASSIGN_OR_RETURN(source_, app::ServedSource::open(model,
                                                    {.tokenizer = options.tokenizer,
                                                     .context_tokens = options.max_model_len,
                                                     .quantization = std::move(quantization)},
                                                    {}, *kernels));
  if (options.max_model_len > source_->trained_context()) {
    terminal::print_warning(
        app::beyond_training(options.max_model_len, source_->trained_context()));
  }
  ASSIGN_OR_RETURN(const app::SamplingDefaults sampling, source_->sampling_defaults({}));
  ASSIGN_OR_RETURN(std::optional<text::ChatTemplate> chat_template,
                   source_->chat_template(options.chat_template));
  std::optional<chat::ServedForm> form;
  if (chat_template) {
    ASSIGN_OR_RETURN(form, chat::find_served_form(*chat_template, source_->tokenizer()));
  }
  ASSIGN_OR_RETURN(engine::BackendOptions sizes, backend_options_of(options, *source_));
  ASSIGN_OR_RETURN(sizes.draft_model,
                   app::load_draft_model(sizes.speculation, source_->tokenizer(), *kernels));
  ASSIGN_OR_RETURN(backend_, source_->create_backend(device, sizes));

  engine::EngineOptions engine_options = {.core = backend_->core_options(),
                                          .tenants = {},
                                          .after_step = [this] { step_notifier_.notify(); }};
  engine_options.core.requests_queued_max = std::numeric_limits<std::uint32_t>::max();
  engine_ = std::make_unique<engine::Engine>(engine_options, backend_->cache(), backend_->runner(),
                                             clock_);
  served_ = std::make_unique<server::ServedModel>(server::ServedModel{
      .names = source_->names(),
      .tokenizer = source_->tokenizer(),
      .chat_template = std::move(chat_template),
      .engine = *engine_,
      .step_notifier = step_notifier_,
      .fingerprint = backend_->core_options().space,
      .sampling_defaults = sampling.params({.temperature = 1.0f}),
      .mask_vocabulary =
          app::mask_vocabulary_of(source_->tokenizer(), engine_->limits().vocabulary),
      .form = std::move(form)});
  return ok_status();
}

}  // namespace pagoda::python
