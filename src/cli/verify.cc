// pagoda verify: every way to an output gives the same bits.
#include "verify/verify.h"

#include "cli/commands.h"
#include "cli/device_flags.h"
#include "cli/kv_flags.h"
#include "cli/model_flags.h"
#include "cli/options.h"

namespace pagoda::cli {
namespace {

constexpr const char* kVerifyExamples =
    "Examples:\n"
    "  pagoda verify\n"
    "  pagoda verify model.gguf --device cuda\n"
    "  pagoda verify --kv-remote redis://127.0.0.1:6379 --json\n"
    "Runs the same prompts in every way this machine has: alone with nothing cached, from the "
    "cache, from tiers, in a batch, in chunks, drafted, preempted, forked, with 1, 2, 3, 5 and 8 "
    "threads. "
    "Tokens and log-probabilities must be equal to the last bit: else the first token that is not "
    "is named, and the exit status is 1. Ways that are not here are named, too.";

}  // namespace

void add_verify_command(const CommandSpec& app, int& exit_status) {
  const CommandSpec command =
      app.add_subcommand("verify", "Show that the cache never changes an output, here, to the bit");
  const auto options = std::make_shared<verify::VerifyOptions>();
  add_model_option(command, options->model);
  add_device_options(command, options->device);
  add_kv_cache_dtype_options(command, options->kv_cache_dtype);
  add_kv_policy_option(command, options->kv_policy);
  command
      .add_option("-t,--threads", options->threads,
                  "threads of the ways whose threads do not vary (default: usable cores)")
      .range(1u, 1024u);
  command
      .add_option("--prompt-tokens", options->prompt_tokens,
                  "tokens of the longest prompt (default 100)")
      .range(40u, 8192u);
  command
      .add_option("-n,--new-tokens", options->new_tokens,
                  "new tokens of each sequence (default 24)")
      .range(1u, 4096u);
  command.add_option("--folder", options->folder,
                     "where the disk tier's files lie meanwhile (default: temporary files')");
  command.add_option("--kv-remote", options->remote,
                     "remote store to go through, too: redis://… or memcached://… (default: none)");
  command.add_flag("--json", options->json, "one JSON object on stdout instead of a table");
  command.footer(kVerifyExamples);
  command.callback([options, &exit_status] { exit_status = verify::verify(*options); });
}

}  // namespace pagoda::cli
