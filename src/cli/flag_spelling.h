// How a flag that has several long names was typed.
#pragma once

#include <string>
#include <vector>

namespace CLI {
class App;
}  // namespace CLI

namespace pagoda::cli {

// An error about a flag that stands among the words by another long name says so: "--requests: 0 is
// not a whole number from 1 to 9 (given as --batch-size)".
std::string with_typed_name(const std::string& message, const CLI::App& command,
                            const std::vector<std::string>& words);

}  // namespace pagoda::cli
