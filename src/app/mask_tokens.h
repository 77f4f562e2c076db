// A tokenizer's vocabulary for structured output (structured/mask_vocabulary.h).
#pragma once

#include <cstddef>
#include <memory>

#include "structured/mask_vocabulary.h"
#include "text/tokenizer.h"

namespace pagoda::app {

// Unknown and unused tokens are in no grammar, control tokens where a grammar names them; end
// tokens end an answer. The model has `vocabulary` logits.
std::shared_ptr<const structured::MaskVocabulary> mask_vocabulary_of(
    const text::Tokenizer& tokenizer, std::size_t vocabulary);

}  // namespace pagoda::app
