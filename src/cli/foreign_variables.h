// Environment variables of other inference servers: a fixed list that is read, and what the others
// are called here.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace pagoda::cli {

// A variable of theirs that stands for a flag of ours.
struct ReadVariable {
  std::string name;
  std::string flag;   // "--max-model-len"
  std::string value;  // as the flag takes it
};

struct ForeignVariables {
  std::vector<ReadVariable> read;
  std::vector<std::string> notes;     // one of each variable of the list that is set
  std::vector<std::string> warnings;  // of those that change nothing here
};

// Reads OLLAMA_…, VLLM_… and LLAMA_ARG_… of `environment` ("NAME=value") for a command. `known` are
// its flags, `given` those that were typed or that a variable of ours gives: they stand above. Only
// `serve` reads a key, and is told of what changes nothing. No variable here changes an address, a
// port, or gives rights: a key is read where nothing else says who may ask. Keys are not shown.
ForeignVariables read_foreign_variables(std::string_view command,
                                        std::span<const char* const> environment,
                                        std::span<const std::string> known,
                                        std::span<const std::string> given);

// The error with the variable's name where it is about the value of one: "--max-model-len: x is
// not …" becomes "OLLAMA_CONTEXT_LENGTH: x is not …".
std::string with_foreign_variable(const std::string& message,
                                  std::span<const ReadVariable> variables);

}  // namespace pagoda::cli
