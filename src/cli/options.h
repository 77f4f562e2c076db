// Options as every command has them: a long name, an environment variable (--kv-disk is
// PAGODA_KV_DISK), a short description that states default and range.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "cli/flags.h"
#include "terminal/messages.h"

namespace pagoda::cli {

// "--kv-disk" -> "PAGODA_KV_DISK"
std::string environment_name(const std::string& long_flag);

// llama.cpp's two-letter flags ("-ctk f16") in their long form, everything else as it is.
std::vector<std::string> with_long_flags(int argc, const char* const* argv);

// "1 token", "2 tokens".
std::string counted(std::uint64_t count, const std::string& noun);

// Words as one line that could be pasted into a shell.
std::string shell_line(const std::vector<std::string>& words);

// The warning about a context that is longer than the model's.
std::string beyond_training(std::uint64_t context, std::uint64_t trained);

// Returns the error for an argument that a command cannot make sense of.
inline Error invalid(std::string message) {
  return {ErrorCode::kInvalidArgument, std::move(message)};
}

// The exit status that shells expect after Ctrl-C.
inline constexpr int kInterrupted = 130;

using terminal::print_error;
using terminal::print_warning;

}  // namespace pagoda::cli
