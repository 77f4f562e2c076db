// The environment variables of flags: --max-model-len is PAGODA_MAX_MODEL_LEN. A flag's variable is
// that of its first long name.
#pragma once

#include <span>
#include <string>
#include <vector>

namespace CLI {
class App;
}  // namespace CLI

namespace pagoda::cli {

// Gives every long flag of the command, and of those below it, its variable.
void add_variables(CLI::App& command);

// Takes its variable from every flag, of the command and of those below it, for which the words
// have one that says as much: what is typed outweighs the environment.
void drop_overridden_variables(CLI::App& command, const std::vector<std::string>& words);

// An error about a value that a variable gave names the variable: "--port: …" becomes
// "PAGODA_PORT: …".
std::string with_variable(const std::string& message, CLI::App& command);

// The error about the first variable whose value is refused, or nothing: newer versions of the
// parser leave such a value out without a word.
std::string refused_variable(CLI::App& command, const std::vector<std::string>& words);

// The long names of the command's flags that are among the words, or whose variable is set.
std::vector<std::string> given_flags(const CLI::App& command,
                                     const std::vector<std::string>& words);

// The variables of all flags of a command and of those below it.
std::vector<std::string> variables_of(const CLI::App& command);

// A warning for each variable of `environment` ("NAME=value") that begins with PAGODA_ and is
// neither among `known` nor one that the program, its tests or its tools read: a misspelt one would
// be silent. Values are not shown.
std::vector<std::string> unknown_variables(std::span<const char* const> environment,
                                           std::span<const std::string> known);

}  // namespace pagoda::cli
