// Flags of other inference servers, for users who type the one they know.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace pagoda::cli {

// Says what a flag of vLLM, SGLang, TensorRT-LLM, llama.cpp or Ollama is called here: "llama.cpp's
// --ctx-size is --max-model-len here". Dashes and underscores are alike. Returns nothing for other
// words, and where `known`, the flags of the command, does not have ours.
std::optional<std::string> foreign_flag_hint(std::string_view word,
                                             std::span<const std::string> known);

// Is the word a flag of one of them, whatever the command? A value behind '=' is no part of it.
bool is_foreign_flag(std::string_view word);

}  // namespace pagoda::cli
