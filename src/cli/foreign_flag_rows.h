// The tables of other servers' flags: foreign_flags.h reads them.
#pragma once

#include <span>
#include <string_view>

namespace pagoda::cli {

// Words that both tables use.
inline constexpr std::string_view kVllm = "vLLM";
inline constexpr std::string_view kSglang = "SGLang";
inline constexpr std::string_view kTensorrt = "TensorRT-LLM";
inline constexpr std::string_view kLlama = "llama.cpp";
inline constexpr std::string_view kOneDevice = "a server computes on one GPU, or on its CPUs";
inline constexpr std::string_view kOneMatcher = "grammars have one matcher here";
inline constexpr std::string_view kOneTask = "a server generates, and embeds at /v1/embeddings";
inline constexpr std::string_view kFoundByItself =
    "a model is read as the GGUF file or the folder that it is";
inline constexpr std::string_view kOneTokenizer = "there is one tokenizer, in one mode";

struct ForeignFlag {
  std::string_view flag;     // with dashes for underscores
  std::string_view program;  // whose it is
  std::string_view here;     // our flag, or words where there is none
  // Behind our flag: a value, a unit, what is different. "N}" holds the number that was typed.
  std::string_view more = {};
};

// A flag that asks for what is here anyway, or for what has no meaning here: the command does the
// same without it.
struct IdleFlag {
  std::string_view flag;
  std::string_view program;
  std::string_view why;
  std::string_view values = {};  // that it may have: "on|off", or "N" for any; empty: none
  bool needs_value = false;      // with another value, or none, it asks for something
};

// Flags that are called the same everywhere need no row. Of several rows of a flag the first that
// names a flag of the command is meant, or that has words. docs/guide/migrate.md has a table by
// subject.
std::span<const ForeignFlag> foreign_flag_rows();

// Taken by serve, run and chat, so that scripts go on working; what would change an answer, its
// speed or who may read it is in the table above.
std::span<const IdleFlag> idle_flag_rows();

}  // namespace pagoda::cli
