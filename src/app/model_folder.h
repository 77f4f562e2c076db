// Finds the model in a folder: one GGUF file (or a set of parts), or config.json with safetensors,
// which is the folder itself.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"

namespace pagoda::app {

// A file that can be read, or a link to one.
bool is_plain_file(const std::string& path);

// A glob of all parts of the set that a GGUF file is of: "m-00001-of-00003.gguf" is
// "m-*-of-00003.gguf"; the file itself where it is no part.
std::string gguf_set_pattern(const std::string& file);

// "a, b and 7 more", for errors.
std::string listed_names(const std::vector<std::string>& names);

// Returns the path of a GGUF file, the first of its set, or the folder. `file` chooses among GGUF
// files as ModelName::file does; empty: there must be one model. `shown`: what
// errors call it, the folder's own path or a model's name.
// Errors: kNotFound where no weights are there, kCorrupt where some are missing (they are named),
// kInvalidArgument where the choice is not clear (the files are listed).
Result<std::string> model_in_folder(const std::string& folder, const std::string& file,
                                    const std::string& shown);

}  // namespace pagoda::app
