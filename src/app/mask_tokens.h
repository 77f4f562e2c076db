// A tokenizer's vocabulary for structured output (structured/mask_vocabulary.h).
#pragma once

#include <cstddef>
#include <memory>

#include "structured/mask_vocabulary.h"
#include "text/tokenizer.h"

namespace pagoda::app {

// Control tokens, unknown and unused ones are in no grammar; end tokens end an answer. The model
// has `vocabulary` logits.
std::shared_ptr<const structured::MaskVocabulary> mask_vocabulary_of(
    const text::Tokenizer& tokenizer, std::size_t vocabulary);

}  // namespace pagoda::app
