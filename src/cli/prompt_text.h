// A prompt as flags give it: the text itself, a file's, or what comes on stdin.
#pragma once

#include <string>

#include "base/result.h"

namespace pagoda::cli {

// Returns the prompt that "-p TEXT" means: the text, or stdin without its last line break for "-".
std::string prompt_text(const std::string& word);

// The text of a file without its last line break; of "-", stdin's.
Result<std::string> prompt_of_file(const std::string& path);

}  // namespace pagoda::cli
