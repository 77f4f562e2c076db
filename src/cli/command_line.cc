// The whole command line: which subcommands there are, and what a wrong word is answered with.
#include <fmt/format.h>

#include <algorithm>

#include "cli/commands.h"
#include "cli/options.h"
#include "cli/version.h"

namespace pagoda::cli {
namespace {

constexpr int kUsageError = 2;

// As it could be pasted into a shell.
std::string line_of(const std::vector<std::string>& words) {
  std::string line = "pagoda";
  for (std::size_t i = 1; i < words.size(); ++i) {
    const bool plain = !words[i].empty() &&
                       words[i].find_first_of(" \t\n\"'\\$`&|;<>()*?[]#~!{}") == std::string::npos;
    std::string quoted = words[i];
    for (std::size_t at = 0; (at = quoted.find('\'', at)) != std::string::npos; at += 4) {
      quoted.replace(at, 1, "'\\''");
    }
    line += plain ? " " + words[i] : " '" + quoted + "'";
  }
  return line;
}

}  // namespace

int run_command_line(int argc, const char* const* argv) {
  CLI::App app("Pagoda: an LLM inference server built around its KV cache", "pagoda");
  app.set_version_flag("--version", fmt::format("pagoda {}", kVersion));
  app.require_subcommand(1);
  app.footer("Each command has its own --help with examples: pagoda run --help");

  std::vector<std::string> words = with_long_flags(argc, argv);
  int exit_status = 0;
  add_run_command(app, exit_status);
  add_chat_command(app, exit_status);
  add_size_command(app, exit_status);
  add_tokenize_command(app, exit_status);
  add_inspect_command(app, exit_status);
  add_replay_command(app, exit_status);
  add_bench_command(app, line_of(words), exit_status);
  for (CLI::App* const command : app.get_subcommands({})) add_environment_twins(*command);

  words.erase(words.begin(), words.begin() + std::min<std::ptrdiff_t>(1, argc));
  std::reverse(words.begin(), words.end());  // CLI11 wants the last word first
  try {
    app.parse(words);
  } catch (const CLI::Success& asked_for_text) {  // --help, --version
    return app.exit(asked_for_text);
  } catch (const CLI::ParseError& error) {
    print_error(error.what());
    fmt::print(stderr, "see: pagoda --help\n");
    return kUsageError;
  }
  return exit_status;
}

}  // namespace pagoda::cli
