// pagoda run: one prompt, answered in the terminal.
#include <fmt/format.h>

#include <memory>

#include "app/model_name.h"
#include "app/prompt_run.h"
#include "cli/commands.h"
#include "cli/device_flags.h"
#include "cli/kv_flags.h"
#include "cli/model_flags.h"
#include "cli/options.h"
#include "cli/prompt_text.h"
#include "cli/speculation_flags.h"
#include "gguf/printable.h"

namespace pagoda::cli {
namespace {

constexpr std::size_t kWordBytesMax = 60;

struct RunOptions : app::PromptRunOptions {
  std::string file;  // with the prompt
  std::string revision;
  bool trusts_remote_code = false;
};

constexpr const char* kRunExamples =
    "Examples:\n"
    "  pagoda run -p 'The tallest pagoda in Japan'\n"
    "  pagoda run model.gguf -p 'Once upon a time' -n 64 --temp 0.8 --seed 7\n"
    "  pagoda run -p 'Once upon a time' -n 64 --no-kv-cache    (the same text, much slower)\n"
    "  pagoda run -f story.txt; git diff | pagoda run -p -\n"
    "Text goes to stdout; the closing line with the figures goes to stderr.";

Result<int> run(RunOptions options, bool is_in_file) {
  if (is_in_file) {
    ASSIGN_OR_RETURN(options.prompt, prompt_of_file(options.file));
  } else {
    options.prompt = prompt_text(options.prompt);
  }
  ASSIGN_OR_RETURN(options.model, app::with_revision(options.model, options.revision));
  ASSIGN_OR_RETURN(const engine::FinishReason reason, app::run_prompt(options));
  return reason == engine::FinishReason::kCancelled ? kInterrupted : 0;
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

// Adds what decides how the output is computed, and not what it is.
void add_computing_options(const CommandSpec& command, RunOptions& options) {
  command.group("Device");
  command.add_option("-t,--threads", options.threads, "threads (default: usable cores)")
      .range(1u, 1024u);
  add_device_options(command, options.device);
  command
      .add_option(
          "--max-num-batched-tokens", options.batched_tokens_max,
          "prompt tokens computed at a time (default: chosen by device: 512; up to 8192 on a GPU)")
      .token_count(1, 1u << 16);
  command.group("KV cache");
  command
      .add_option("-c,--max-model-len", options.max_model_len,
                  "context in tokens, prompt and output; 8k is 8000, 8K is 8192 (default, and 0: "
                  "the model's)")
      .token_count(0, std::uint64_t{1} << 30);
  add_kv_cache_dtype_options(command, options.kv_cache_dtype);
  add_kv_policy_option(command, options.kv_policy);
  command.add_option("--block-size", options.block_size, "tokens in a KV block (default 16)")
      .range(1u, 4096u);
  command.add_flag("--no-kv-cache", options.no_kv_cache,
                   "compute the whole sequence again for every token: same text, slower");
  command.group("Draft tokens");
  add_speculation_options(command, options.speculation);
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
  command.group("Model");
  add_model_option(command, options->model);
  add_revision_option(command, options->revision);
  add_tokenizer_option(command, options->tokenizer);
  add_override_options(command, options->overrides);
  add_quantization_options(command, options->quantization);
  add_generation_options(command, options->generation);
  add_trust_option(command, options->trusts_remote_code);
  command.group("Prompt");
  const PromptFlags prompt = {
      .model = command.flag("--model"),
      .text = command.add_option("-p,--prompt", options->prompt,
                                 "text to continue; \"-\" reads it from stdin"),
      .file = command
                  .add_option("-f,--file", options->file,
                              "file with the text to continue; \"-\" is stdin")
                  .type_name("FILE")};
  command.add_flag("--special", options->special,
                   "recognise special tokens such as <|im_start|> in the prompt");
  command.group("Output");
  command.add_option("-n,--max-tokens", options->tokens_max, "new tokens at most (default 256)")
      .token_count(1, 1u << 30);
  add_sampling_options(command, *options);
  command.add_flag("--ignore-eos", options->ignore_eos, "go on after an end-of-text token");
  add_computing_options(command, *options);
  command.used_most({"--model", "--prompt", "--file", "--max-tokens", "--temp", "--top-p", "--seed",
                     "--max-model-len", "--threads", "--device"});
  command.footer(kRunExamples);
  command.callback([options, prompt, &exit_status] {
    check_prompt(prompt, *options);
    const Result<int> outcome = run(*options, prompt.is_in_file());
    if (!outcome.ok()) print_error(outcome.error().message);
    exit_status = outcome.ok() ? outcome.value() : 1;
  });
}

}  // namespace pagoda::cli
