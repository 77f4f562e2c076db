// Flags of other inference servers, for users who type the one they know.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace pagoda::cli {

// Says what a flag of vLLM, SGLang, TensorRT-LLM, llama.cpp or Ollama, or of another command of
// ours, is called here: "llama.cpp's --ctx-size is --max-model-len here". Dashes and underscores
// are alike. Returns nothing for other words, and where `known`, the flags of the command, does not
// have ours. `next` is the word behind it, which is shown where it is a number.
std::optional<std::string> foreign_flag_hint(std::string_view word,
                                             std::span<const std::string> known,
                                             std::string_view next = {});

// A flag of theirs that is taken and changes nothing.
struct TakenFlag {
  std::string note;   // "llama.cpp's --jinja does nothing here: …"
  std::size_t words;  // 2 where the next word is its value
};

// Takes a flag that asks for what is always so here ("-fa on"), or for what has no meaning here.
// `next` is the word behind it, or empty. Returns nothing for other words, and for a flag that
// `known`, the flags of the command, has.
std::optional<TakenFlag> take_idle_flag(std::string_view word, std::string_view next,
                                        std::span<const std::string> known);

// Is the word a flag of one of them, whatever the command? A value behind '=' is no part of it.
bool is_foreign_flag(std::string_view word);

}  // namespace pagoda::cli
