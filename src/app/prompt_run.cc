#include "app/prompt_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <span>
#include <utility>

#include "app/draft_model.h"
#include "app/single_request.h"
#include "base/clock.h"
#include "base/random.h"
#include "engine/single_sequence.h"
#include "kernels/select.h"
#include "model/decoder.h"
#include "terminal/interrupt.h"
#include "terminal/messages.h"
#include "terminal/progress_bar.h"
#include "text/detokenizer.h"

namespace pagoda::app {
namespace {

std::uint64_t context_of(const PromptRunOptions& options, const model::Config& config) {
  if (options.max_model_len == 0) return config.context;
  if (options.max_model_len > config.context) {
    terminal::print_warning(beyond_training(options.max_model_len, config.context));
  }
  return options.max_model_len;
}

// ", 12 of 30 draft tokens accepted"; nothing where nothing was to draft.
std::string drafts_text(const PromptRunOptions& options, const engine::DraftCounts& drafts) {
  if (options.speculation.methods.empty() || options.no_kv_cache) return {};
  if (drafts.tokens == 0) return ", nothing drafted";
  return fmt::format(", {} of {} accepted", drafts.accepted,
                     terminal::counted(drafts.tokens, "draft token"));
}

void print_summary(const PromptRunOptions& options, const EngineOutput& answer,
                   const engine::SingleRequest& request) {
  const std::size_t prompt_tokens = request.prompt.size();
  const auto rate = [](double count, double seconds) { return seconds > 0 ? count / seconds : 0; };
  const double decoded = answer.tokens.empty() ? 0 : static_cast<double>(answer.tokens.size() - 1);
  fmt::print(
      stderr, "prompt {}, prefill {:.1f} tok/s, TTFT {:.0f} ms, {}, decode {:.1f} tok/s{}{}{}\n",
      terminal::counted(prompt_tokens, "token"),
      rate(static_cast<double>(prompt_tokens), answer.first_token_s), answer.first_token_s * 1e3,
      terminal::counted(answer.tokens.size(), "new token"), rate(decoded, answer.decode_s),
      !request.kv_cache ? fmt::format(", no KV cache ({} computed)",
                                      terminal::counted(answer.tokens_computed, "token"))
                        : "",
      drafts_text(options, answer.drafts),
      request.sampling.temperature > 0 ? fmt::format(", seed {}", request.sampling.seed) : "");
}

engine::BackendOptions backend_options(const PromptRunOptions& options, const LoadedModel& model,
                                       std::uint64_t context) {
  engine::BackendOptions made;
  made.threads = options.threads;
  made.kv_cache_dtype = options.kv_cache_dtype;
  made.kv_policy = options.kv_policy;
  made.block_tokens = options.block_size;
  made.context_tokens = context;
  made.speculation = options.speculation;
  made.model_name = options.model;
  made.on_pack = model.pack_progress();
  const std::span<const TokenId> ends = model.tokenizer().end_tokens();
  if (!options.ignore_eos) made.end_tokens.assign(ends.begin(), ends.end());
  return made;
}

// On a GPU where one is wanted, else by the plain way over a decoder unless drafts or a KV policy
// are wanted.
Result<EngineOutput> generate(const PromptRunOptions& options, const LoadedModel& model,
                              const kernels::KernelSet& kernels,
                              const engine::SingleRequest& request, const Clock& clock) {
  if (options.no_kv_cache && options.device.kind == DeviceKind::kCuda) {
    return Error{ErrorCode::kUnsupported,
                 "`no_kv_cache`: not supported on a GPU; use `device=cpu`"};
  }
  if (options.no_kv_cache && !options.kv_policy.is_full()) {
    return Error{ErrorCode::kUnsupported,
                 "`kv_policy`: bounds a cache, and `no_kv_cache` leaves none: use one of them"};
  }
  if (options.no_kv_cache && options.device.ranks > 1) {
    return Error{ErrorCode::kUnsupported,
                 "`no_kv_cache`: computes on one rank; leave `tensor_parallel_size` out"};
  }
  DeviceOptions device = options.device;
  if (options.no_kv_cache) device.kind = DeviceKind::kCpu;
  device.steps = StepFlags{.sequences_max = 1, .batched_tokens_max = options.batched_tokens_max};
  if (options.batched_tokens_max == 1) device.steps->batched_tokens_max = 2;  // an engine's least
  // Drafts and policies are an engine's.
  const bool needs_engine = !options.no_kv_cache &&
                            (!options.speculation.methods.empty() || !options.kv_policy.is_full());
  engine::BackendOptions sizes = backend_options(options, model, request.context_max);
  if (!options.no_kv_cache) {
    ASSIGN_OR_RETURN(sizes.draft_model,
                     load_draft_model(options.speculation, model.tokenizer(), kernels));
  }
  const bool has_engine = needs_engine || device.ranks > 1;
  ASSIGN_OR_RETURN(
      const std::unique_ptr<engine::Backend> backend,
      has_engine ? create_backend(device, model, kernels, sizes)
                 : create_gpu_backend(device, model.config(), model.weights(), kernels, sizes));
  if (backend) return generate_on(*backend, request, clock);
  RETURN_IF_ERROR(model::check_kv_cache_dtype(model.config(), options.kv_cache_dtype));
  ThreadPool pool(options.threads);
  model::Decoder decoder(model.config(), model.weights(), kernels, pool,
                         {.rows_max = options.batched_tokens_max.value_or(
                              choose_steps(*device.steps, {}).batched_tokens_max),
                          .kv_cache_dtype = options.kv_cache_dtype,
                          .block_tokens = options.block_size,
                          .on_pack = model.pack_progress()});
  ASSIGN_OR_RETURN(engine::SingleOutput plain, engine::generate_single(decoder, request, clock));
  return EngineOutput{std::move(plain), {}};
}

// Text as it comes, never half a character.
class TextStream {
 public:
  TextStream(const text::Tokenizer& tokenizer, std::span<const TokenId> prompt)
      : detokenizer_(tokenizer) {
    for (const TokenId id : prompt) detokenizer_.push(id);
  }
  void write(TokenId id) { print(detokenizer_.push(id)); }
  void finish() { print(detokenizer_.finish() + "\n"); }

 private:
  static void print(const std::string& piece) {
    std::fwrite(piece.data(), 1, piece.size(), stdout);
    std::fflush(stdout);
  }
  text::Detokenizer detokenizer_;
};

// Flags, above what the model's file recommends, above taking the likeliest token.
Result<engine::SamplingParams> sampling_of(const PromptRunOptions& options,
                                           const LoadedModel& model) {
  SamplingDefaults of_file = file_sampling(model.file().metadata());
  for (const std::string& warning : of_file.warnings) terminal::print_warning(warning);
  ASSIGN_OR_RETURN(const SamplingDefaults defaults,
                   with_generation_config(std::move(of_file), options.generation));
  engine::SamplingParams made = defaults.params({});
  options.given.apply_to(made);
  made.seed = options.seed.value_or(fresh_seed());
  return made;
}

}  // namespace

Result<engine::FinishReason> run_prompt(const PromptRunOptions& options) {
  ASSIGN_OR_RETURN(const kernels::KernelSet* const kernels, kernels::select_set());
  ASSIGN_OR_RETURN(const std::unique_ptr<LoadedModel> model,
                   LoadedModel::load(options.model, *kernels,
                                     {.tokenizer = options.tokenizer,
                                      .context_tokens = options.max_model_len,
                                      .overrides = options.overrides,
                                      .quantization = options.quantization}));
  const text::Tokenizer& tokenizer = model->tokenizer();

  engine::SingleRequest request;
  ASSIGN_OR_RETURN(request.sampling, sampling_of(options, *model));
  request.prompt =
      tokenizer.encode(options.prompt, {.special = options.special, .add_bos_eos = true});
  request.tokens_max = options.tokens_max;
  request.context_max = context_of(options, model->config());
  request.kv_cache = !options.no_kv_cache;

  const SteadyClock clock;
  const terminal::Interrupt interrupt;
  TextStream stream(tokenizer, request.prompt);
  terminal::ProgressBar progress("prefill", "tokens", clock);
  request.stops = [&](TokenId id) { return !options.ignore_eos && tokenizer.ends_generation(id); };
  request.on_prefill = [&](std::uint64_t done, std::uint64_t all) { progress.show(done, all); };
  request.on_token = [&](TokenId id) {
    progress.clear();
    if (tokenizer.contains(id)) stream.write(id);
  };
  request.cancelled = [&] { return interrupt.requested(); };

  ASSIGN_OR_RETURN(const EngineOutput given, generate(options, *model, *kernels, request, clock));
  progress.clear();
  stream.finish();
  print_summary(options, given, request);
  if (given.reason == engine::FinishReason::kContext) {
    terminal::print_warning(
        fmt::format("the context of {} is full", terminal::counted(request.context_max, "token")));
  }
  return given.reason;
}

}  // namespace pagoda::app
