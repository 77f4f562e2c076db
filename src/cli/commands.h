// The subcommands. Each add_…_command registers its options and help on the app; when chosen, its
// callback does the work and sets exit_status: 0 fine, 1 failed with "error: …" on stderr, 2 asked
// for something that makes no sense.
#pragma once

#include <string>

#include "cli/flags.h"

namespace pagoda::cli {

void add_serve_command(const CommandSpec& app, int& exit_status);
void add_run_command(const CommandSpec& app, int& exit_status);
void add_pull_command(const CommandSpec& app, int& exit_status);
void add_chat_command(const CommandSpec& app, int& exit_status);
void add_plan_command(const CommandSpec& app, int& exit_status);
void add_size_command(const CommandSpec& app, int& exit_status);
void add_tokenize_command(const CommandSpec& app, int& exit_status);
void add_template_command(const CommandSpec& app, int& exit_status);
void add_inspect_command(const CommandSpec& app, int& exit_status);
void add_explain_command(const CommandSpec& app, int& exit_status);
void add_replay_command(const CommandSpec& app, int& exit_status);
void add_verify_command(const CommandSpec& app, int& exit_status);
// `command_line`: as typed, for the reports.
void add_eval_command(const CommandSpec& app, const std::string& command_line, int& exit_status);
void add_bench_command(const CommandSpec& app, const std::string& command_line, int& exit_status);

// Parses and runs a whole command line; returns the exit status.
int run_command_line(int argc, const char* const* argv);

}  // namespace pagoda::cli
