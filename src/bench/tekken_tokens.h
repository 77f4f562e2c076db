// Reads tekken.json, the vocabulary of Mistral's models as PyPI's mistral-common has it.
#pragma once

#include <memory>
#include <string>

#include "base/result.h"
#include "structured/mask_vocabulary.h"

namespace pagoda::bench {

Result<std::shared_ptr<const structured::MaskVocabulary>> read_tekken(const std::string& path);

}  // namespace pagoda::bench
