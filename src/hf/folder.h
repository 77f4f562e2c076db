// A model in a Hugging Face folder: config.json, *.safetensors and tokenizer.json, described in
// GGUF's words, so that nobody behind gguf::File knows where weights come from.
#pragma once

#include <string>

#include "base/result.h"
#include "gguf/file.h"
#include "hf/overrides.h"

namespace pagoda::hf {

// Opens the folder. Every file whose bytes matter is one of File::opened_parts().
Result<gguf::File> open_folder(const std::string& path, const ConfigOverrides& overrides = {});

}  // namespace pagoda::hf
