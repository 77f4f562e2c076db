// pagoda eval: what KV formats and KV policies cost in quality.
#include "eval/eval.h"

#include <algorithm>
#include <iterator>
#include <memory>

#include "app/model_name.h"
#include "cli/commands.h"
#include "cli/device_flags.h"
#include "cli/kv_flags.h"
#include "cli/model_flags.h"
#include "cli/options.h"
#include "eval/kv_configuration.h"
#include "eval/quality_gate.h"

namespace pagoda::cli {
namespace {

constexpr const char* kEvalExamples =
    "Examples:\n"
    "  pagoda eval --kv fp16\n"
    "  pagoda eval model.gguf --kv fp16,fp32 --file wikitext-2-test.txt --json\n"
    "  pagoda eval model.gguf --kv fp8 --device cuda --plot quality.svg\n"
    "  pagoda eval --policy window:512,streaming:4+508 --beyond 10240 --plot beyond.svg\n"
    "  pagoda eval --policy window:1024,streaming:4+1024 --kv int8@streaming:4+1024\n"
    "  pagoda eval --kv fp16 --quick          (KL, same top token and perplexity at depth alone)\n"
    "Everything is measured against bf16 keys and values and the full context: perplexity in "
    "windows of 512 tokens "
    "(llama.cpp's method) and at positions 4,096 to 6,095 of one text, KL divergence, how often "
    "the top token is the same, retrieval (a needle by depth and length, recall of keys, copying) "
    "and tool calls. Tasks that the model cannot do with bf16 are shown and do not count. A format "
    "passes with a mean KL of at most 0.01, the same top token at 98 % of positions or more, and "
    "no task that loses more than a tenth of its answers. What is finished is kept in the cache "
    "folder: the same command goes on, and pagoda serve reads it.";

void add_measuring_options(const CommandSpec& command, eval::EvalOptions& options) {
  command
      .add_option("--file", options.file, "the text (default: a part of Shakespeare's Coriolanus)")
      .type_name("FILE");
  command
      .add_option("--depth", options.depth,
                  "first position that is scored at depth (default 4096, or as deep as text and "
                  "context allow)")
      .range(1u, 1u << 24);
  command
      .add_option("--positions", options.positions,
                  "positions that are scored at depth (default 2000)")
      .range(1u, 1u << 20);
  command
      .add_option("--windows", options.windows,
                  "windows of 512 tokens to read at most; 0: none (default 40)")
      .range(0u, 1u << 20);
  command
      .add_option(
          "--beyond", options.beyond,
          "instead of all else: perplexity by position over so many tokens of the text, past "
          "the context")
      .range(std::uint64_t{1024}, std::uint64_t{1} << 22);
  command.add_flag("--quick", options.quick, "the part at depth alone: no windows, no tasks");
  command
      .add_option("--time-limit", options.time_limit_s,
                  "seconds to which the part at depth is shortened, with --quick (default 0: no "
                  "limit)")
      .range(0.0, 86400.0);
  command.add_flag("--fresh", options.fresh, "measure again what is kept from before");
  command.add_flag("--background", options.background,
                   "at the lowest priority, and end with the process that started this one");
}

// The baseline is there anyway, and a name that is given twice is measured once.
std::vector<eval::EvalConfiguration> wanted_configurations(const eval::EvalOptions& options,
                                                           const model::KvCacheDtype& skipped) {
  std::vector<eval::EvalConfiguration> wanted;
  for (const eval::EvalConfiguration& given : options.configurations) {
    eval::EvalConfiguration each = eval::without_layers(given, skipped);
    const auto is_same = [&](const eval::EvalConfiguration& other) {
      return other.name == each.name;
    };
    if (is_same(options.baseline) || std::any_of(wanted.begin(), wanted.end(), is_same)) continue;
    wanted.push_back(std::move(each));
  }
  return wanted;
}

}  // namespace

void add_eval_command(const CommandSpec& app, const std::string& command_line, int& exit_status) {
  const CommandSpec command =
      app.add_subcommand("eval", "What KV formats and KV policies cost in quality, beside bf16");
  const auto options = std::make_shared<eval::EvalOptions>();
  const auto revision = std::make_shared<std::string>();
  command.group("Model");
  add_model_option(command, options->model);
  add_revision_option(command, *revision);
  add_tokenizer_option(command, options->load.tokenizer);
  add_override_options(command, options->load.overrides);
  add_quantization_options(command, options->load.quantization);
  command
      .add_option("-c,--max-model-len", options->load.context_tokens,
                  "context in tokens (default, and 0: the model's)")
      .token_count(0, std::uint64_t{1} << 30);
  command.group("Device");
  add_device_options(command, options->device);
  command
      .add_option("--block-size", options->block_size,
                  "tokens in a KV block, which h2o and snapkv drop whole (default 16)")
      .range(1u, 4096u);
  command.add_option("-t,--threads", options->threads, "threads (default: usable cores)")
      .range(1u, 1024u);
  command.group("What is compared");
  options->baseline = eval::kv_configuration(std::string(eval::kBaselineName)).value();
  add_kv_configurations_option(command, options->configurations);
  const auto policies = std::make_shared<std::vector<eval::EvalConfiguration>>();
  add_policy_configurations_option(command, *policies);
  const auto skipped = std::make_shared<model::KvCacheDtype>();
  add_skip_layers_option(command, *skipped);
  command.group("What is measured");
  add_measuring_options(command, *options);
  command.group("Report");
  command.add_flag("--json", options->json, "one JSON object on stdout instead of a table");
  command.add_option("--plot", options->plot, "draw quality over memory into this SVG file")
      .type_name("FILE");
  command.used_most({"--model", "--kv", "--policy", "--file", "--quick", "--max-model-len",
                     "--device", "--threads", "--json", "--plot"});
  command.footer(kEvalExamples);
  command.callback([options, policies, skipped, revision, command_line, &exit_status] {
    const Result<std::string> model = app::with_revision(options->model, *revision);
    if (!model.ok()) {
      print_error(model.error().message);
      exit_status = 1;
      return;
    }
    options->model = model.value();
    options->command_line = command_line;
    options->quick = options->quick || options->time_limit_s > 0;
    if (options->configurations.empty() && policies->empty()) {
      options->configurations = {eval::kv_configuration(kEvaluatedByDefault).value()};
    }
    std::ranges::copy(*policies, std::back_inserter(options->configurations));
    options->configurations = wanted_configurations(*options, *skipped);
    exit_status = eval::eval(*options);
  });
}

}  // namespace pagoda::cli
