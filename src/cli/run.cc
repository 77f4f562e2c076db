// pagoda run: one prompt, answered in the terminal.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <optional>

#include "app/device_choice.h"
#include "app/loaded_model.h"
#include "app/model_name.h"
#include "app/sampling_defaults.h"
#include "app/single_request.h"
#include "base/clock.h"
#include "base/random.h"
#include "base/thread_pool.h"
#include "cli/commands.h"
#include "cli/device_flags.h"
#include "cli/kv_flags.h"
#include "cli/model_flags.h"
#include "cli/options.h"
#include "cli/prompt_text.h"
#include "cli/speculation_flags.h"
#include "engine/single_sequence.h"
#include "gguf/printable.h"
#include "kernels/select.h"
#include "model/decoder.h"
#include "terminal/interrupt.h"
#include "terminal/progress_bar.h"
#include "text/detokenizer.h"

namespace pagoda::cli {
namespace {

constexpr std::size_t kWordBytesMax = 60;

struct RunOptions {
  std::string model = app::default_model_path();
  std::string prompt;
  std::string file;  // with the prompt
  std::uint32_t tokens_max = 256;
  std::string revision;
  std::string tokenizer;
  hf::ConfigOverrides overrides;
  app::QuantizationOptions quantization;
  bool trusts_remote_code = false;
  app::GenerationConfig generation;
  app::SamplingFields given;        // by flags
  engine::SamplingParams sampling;  // the flags above the model's own
  std::optional<std::uint64_t> seed;
  bool no_kv_cache = false;
  bool special = false;
  bool ignore_eos = false;
  std::uint32_t threads = static_cast<std::uint32_t>(usable_cores());
  std::uint64_t max_model_len = 0;  // 0: the model's own
  model::KvCacheDtype kv_cache_dtype;
  std::uint32_t block_size = 16;
  std::uint32_t batched_tokens_max = 512;
  app::DeviceOptions device;
  speculate::SpeculationOptions speculation;
};

constexpr const char* kRunExamples =
    "Examples:\n"
    "  pagoda run -p 'The tallest pagoda in Japan'\n"
    "  pagoda run model.gguf -p 'Once upon a time' -n 64 --temp 0.8 --seed 7\n"
    "  pagoda run -p 'Once upon a time' -n 64 --no-kv-cache    (the same text, much slower)\n"
    "  pagoda run -f story.txt; git diff | pagoda run -p -\n"
    "Text goes to stdout; the closing line with the figures goes to stderr.";

std::uint64_t context_of(const RunOptions& options, const model::Config& config) {
  if (options.max_model_len == 0) return config.context;
  if (options.max_model_len > config.context) {
    print_warning(beyond_training(options.max_model_len, config.context));
  }
  return options.max_model_len;
}

void print_summary(const engine::SingleOutput& answer, std::size_t prompt_tokens,
                   const RunOptions& options) {
  const auto rate = [](double count, double seconds) { return seconds > 0 ? count / seconds : 0; };
  const double decoded = answer.tokens.empty() ? 0 : static_cast<double>(answer.tokens.size() - 1);
  fmt::print(
      stderr, "prompt {}, prefill {:.1f} tok/s, TTFT {:.0f} ms, {}, decode {:.1f} tok/s{}{}\n",
      counted(prompt_tokens, "token"),
      rate(static_cast<double>(prompt_tokens), answer.first_token_s), answer.first_token_s * 1e3,
      counted(answer.tokens.size(), "new token"), rate(decoded, answer.decode_s),
      options.no_kv_cache
          ? fmt::format(", no KV cache ({} computed)", counted(answer.tokens_computed, "token"))
          : "",
      options.sampling.temperature > 0 ? fmt::format(", seed {}", options.sampling.seed) : "");
}

engine::BackendOptions backend_options(const RunOptions& options, const app::LoadedModel& model,
                                       std::uint64_t context) {
  engine::BackendOptions made;
  made.threads = options.threads;
  made.kv_cache_dtype = options.kv_cache_dtype;
  made.block_tokens = options.block_size;
  made.context_tokens = context;
  made.scheduler.sequences_max = 1;
  made.scheduler.batched_tokens_max = std::max(options.batched_tokens_max, 2u);
  made.speculation = options.speculation;
  made.model_name = options.model;
  made.on_pack = model.pack_progress();
  const std::span<const TokenId> ends = model.tokenizer().end_tokens();
  if (!options.ignore_eos) made.end_tokens.assign(ends.begin(), ends.end());
  return made;
}

// On a GPU where one is wanted, else by the plain way over a decoder unless drafts are wanted.
Result<engine::SingleOutput> answer(const RunOptions& options, const app::LoadedModel& model,
                                    const kernels::KernelSet& kernels,
                                    const engine::SingleRequest& request, const Clock& clock) {
  if (options.no_kv_cache && options.device.kind == app::DeviceKind::kCuda) {
    return Error{ErrorCode::kUnsupported,
                 "--no-kv-cache: not supported on a GPU; use --device cpu"};
  }
  app::DeviceOptions device = options.device;
  if (options.no_kv_cache) device.kind = app::DeviceKind::kCpu;
  // Drafts are an engine's.
  const auto create_backend = options.speculation.methods.empty() || options.no_kv_cache
                                  ? app::create_gpu_backend
                                  : app::create_backend;
  ASSIGN_OR_RETURN(const std::unique_ptr<engine::Backend> backend,
                   create_backend(device, model.config(), model.weights(), kernels,
                                  backend_options(options, model, request.context_max)));
  if (backend) return app::generate_on(*backend, request, clock);
  RETURN_IF_ERROR(model::check_kv_cache_dtype(model.config(), options.kv_cache_dtype));
  ThreadPool pool(options.threads);
  model::Decoder decoder(model.config(), model.weights(), kernels, pool,
                         {.rows_max = options.batched_tokens_max,
                          .kv_cache_dtype = options.kv_cache_dtype,
                          .block_tokens = options.block_size,
                          .on_pack = model.pack_progress()});
  return engine::generate_single(decoder, request, clock);
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
Result<engine::SamplingParams> sampling_of(const RunOptions& options,
                                           const app::LoadedModel& model) {
  app::SamplingDefaults of_file = app::file_sampling(model.file().metadata());
  for (const std::string& warning : of_file.warnings) print_warning(warning);
  ASSIGN_OR_RETURN(const app::SamplingDefaults defaults,
                   app::with_generation_config(std::move(of_file), options.generation));
  engine::SamplingParams made = defaults.params({});
  options.given.apply_to(made);
  made.seed = options.seed.value_or(fresh_seed());
  return made;
}

Result<int> run(RunOptions options, bool is_in_file) {
  if (is_in_file) {
    ASSIGN_OR_RETURN(options.prompt, prompt_of_file(options.file));
  } else {
    options.prompt = prompt_text(options.prompt);
  }
  ASSIGN_OR_RETURN(options.model, app::with_revision(options.model, options.revision));
  ASSIGN_OR_RETURN(const kernels::KernelSet* const kernels, kernels::select_set());
  ASSIGN_OR_RETURN(const std::unique_ptr<app::LoadedModel> model,
                   app::LoadedModel::load(options.model, *kernels,
                                          {.tokenizer = options.tokenizer,
                                           .context_tokens = options.max_model_len,
                                           .overrides = options.overrides,
                                           .quantization = options.quantization}));
  const text::Tokenizer& tokenizer = model->tokenizer();
  ASSIGN_OR_RETURN(options.sampling, sampling_of(options, *model));

  engine::SingleRequest request;
  request.prompt =
      tokenizer.encode(options.prompt, {.special = options.special, .add_bos_eos = true});
  request.tokens_max = options.tokens_max;
  request.context_max = context_of(options, model->config());
  request.kv_cache = !options.no_kv_cache;
  request.sampling = options.sampling;

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

  ASSIGN_OR_RETURN(const engine::SingleOutput given,
                   answer(options, *model, *kernels, request, clock));
  progress.clear();
  stream.finish();
  print_summary(given, request.prompt.size(), options);
  if (given.reason == engine::FinishReason::kContext) {
    print_warning(fmt::format("the context of {} is full", counted(request.context_max, "token")));
  }
  return given.reason == engine::FinishReason::kCancelled ? kInterrupted : 0;
}

void add_sampling_options(const CommandSpec& command, RunOptions& options) {
  command
      .add_option("--temp,--temperature", options.given.temperature,
                  "0 takes the likeliest token; higher is more varied (default: as the model's "
                  "file recommends, else 0)")
      .range(0.0, 100.0);
  add_token_choice_options(command, options.given);
  command
      .add_option("--top-p", options.given.top_p,
                  "sample from the likeliest tokens that make up this probability (default: the "
                  "file's, else 1)")
      .range(1e-6, 1.0);
  command.add_option("--seed", options.seed,
                     "sampling seed (default: a fresh one, printed at the end)");
}

// The flags by which a prompt is given, or is forgotten.
struct PromptFlags {
  Flag model;
  Flag text;
  Flag file;

  // A flag that was typed stands above a variable.
  bool is_in_file() const {
    if (text.count() == 0) return true;
    return file.count() > 0 && text.is_from_environment() && !file.is_from_environment();
  }
};

// Ends the command where there is no prompt, or two. "run 'Once upon a time'" has one, but where a
// model stands.
void check_prompt(const PromptFlags& flags, const RunOptions& options) {
  const bool is_typed_twice = flags.text.count() > 0 && flags.file.count() > 0 &&
                              !flags.text.is_from_environment() &&
                              !flags.file.is_from_environment();
  if (is_typed_twice) throw_usage("--prompt and --file are both given");
  if (flags.text.count() > 0 || flags.file.count() > 0) return;
  const bool is_model = flags.model.count() == 0 || flags.model.is_from_environment() ||
                        app::open_model_file(options.model).ok();
  if (is_model) throw_required("--prompt");
  throw_usage(fmt::format("--prompt is required, and {0} is no model: was -p '{0}' meant?",
                          gguf::printable(options.model, kWordBytesMax)));
}

}  // namespace

void add_run_command(const CommandSpec& app, int& exit_status) {
  const CommandSpec command = app.add_subcommand("run", "Complete one prompt in the terminal");
  const auto options = std::make_shared<RunOptions>();
  add_model_option(command, options->model);
  add_revision_option(command, options->revision);
  add_tokenizer_option(command, options->tokenizer);
  add_override_options(command, options->overrides);
  add_quantization_options(command, options->quantization);
  add_generation_options(command, options->generation);
  add_trust_option(command, options->trusts_remote_code);
  const PromptFlags prompt = {
      .model = command.flag("--model"),
      .text = command.add_option("-p,--prompt", options->prompt,
                                 "text to continue; \"-\" reads it from stdin"),
      .file = command
                  .add_option("-f,--file", options->file,
                              "file with the text to continue; \"-\" is stdin")
                  .type_name("FILE")};
  command.add_option("-n,--max-tokens", options->tokens_max, "new tokens at most (default 256)")
      .range(1u, 1u << 30);
  add_sampling_options(command, *options);
  command.add_flag("--no-kv-cache", options->no_kv_cache,
                   "compute the whole sequence again for every token: same text, slower");
  command.add_flag("--special", options->special,
                   "recognise special tokens such as <|im_start|> in the prompt");
  command.add_flag("--ignore-eos", options->ignore_eos, "go on after an end-of-text token");
  command.add_option("-t,--threads", options->threads, "threads (default: usable cores)")
      .range(1u, 1024u);
  command
      .add_option("-c,--max-model-len", options->max_model_len,
                  "context in tokens, prompt and output (default: the model's)")
      .range(std::uint64_t{1}, std::uint64_t{1} << 30);
  add_device_options(command, options->device);
  add_speculation_options(command, options->speculation);
  add_kv_cache_dtype_options(command, options->kv_cache_dtype);
  command.add_option("--block-size", options->block_size, "tokens in a KV block (default 16)")
      .range(1u, 4096u);
  command
      .add_option("--max-num-batched-tokens", options->batched_tokens_max,
                  "prompt tokens computed at a time (default 512)")
      .range(1u, 1u << 16);
  command.footer(kRunExamples);
  command.callback([options, prompt, &exit_status] {
    check_prompt(prompt, *options);
    const Result<int> outcome = run(*options, prompt.is_in_file());
    if (!outcome.ok()) print_error(outcome.error().message);
    exit_status = outcome.ok() ? outcome.value() : 1;
  });
}

}  // namespace pagoda::cli
