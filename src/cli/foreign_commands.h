// Commands of other servers' programs, for users who type the one they know.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace pagoda::cli {

// Says what does the same here: "pagoda inspect MODEL shows a model" for Ollama's "show". `above`
// is the command that the word stands behind: "bench", or nothing. Returns nothing for other words.
std::optional<std::string> foreign_command_hint(std::string_view above, std::string_view word);

// vLLM's --served-model-name takes several names behind one flag: each gets a flag of its own.
// Where no other word names the model, one that is a file or a folder, or is called like a file, is
// the model. `words` begin with "serve".
std::vector<std::string> with_each_served_name(std::vector<std::string> words);

}  // namespace pagoda::cli
