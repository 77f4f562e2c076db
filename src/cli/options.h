// Options as every command has them: a long name, an environment variable (--kv-disk is
// PAGODA_KV_DISK), a short description that states default and range.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace pagoda::cli {

// "--kv-disk" -> "PAGODA_KV_DISK"
std::string environment_name(const std::string& long_flag);

// Gives every long option of `command`, and of the commands below it, its environment variable.
// Call after all options are added.
void add_environment_variables(CLI::App& command);

// The model file, as a word of its own or behind -m or --model; `model` holds the default.
void add_model_option(CLI::App& command, std::string& model);

// llama.cpp's two-letter flags ("-ctk f16") in their long form, everything else as it is.
std::vector<std::string> with_long_flags(int argc, const char* const* argv);

// Prints "error: message" on stderr, with the flags of the fields that the message names.
void print_error(const std::string& message);
void print_warning(const std::string& message);

}  // namespace pagoda::cli
