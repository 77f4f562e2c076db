// Options as every command has them: a long name, an environment variable (--kv-disk is
// PAGODA_KV_DISK), a short description that states default and range.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "cli/flags.h"
#include "terminal/messages.h"

namespace pagoda::cli {

// "--kv-disk" -> "PAGODA_KV_DISK"
std::string environment_name(const std::string& long_flag);

// "-ctk" for "--cache-type-k"; empty where a flag has no name of several letters behind one dash.
std::string_view two_letter_flag(std::string_view long_flag);

// llama.cpp's two-letter flags ("-ctk f16") in their long form, everything else as it is.
std::vector<std::string> with_long_flags(int argc, const char* const* argv);

// Returns the error for an argument that a command cannot make sense of.
inline Error invalid(std::string message) {
  return {ErrorCode::kInvalidArgument, std::move(message)};
}

// The exit status that shells expect after Ctrl-C.
inline constexpr int kInterrupted = 130;

using terminal::print_error;
using terminal::print_note;
using terminal::print_warning;

}  // namespace pagoda::cli
