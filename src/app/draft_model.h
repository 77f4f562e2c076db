// The draft model of a served model: loaded, and checked against the vocabulary that it drafts in.
#pragma once

#include <optional>

#include "base/result.h"
#include "engine/backends/backend_options.h"
#include "kernels/ops.h"
#include "speculate/options.h"
#include "text/tokenizer.h"

namespace pagoda::app {

// Loads the draft model that the options name; nothing where they name none. `tokenizer` is that of
// the model that it drafts for: an error says which token is another in the draft model.
Result<std::optional<engine::DraftModelParts>> load_draft_model(
    const speculate::SpeculationOptions& options, const text::Tokenizer& tokenizer,
    const kernels::KernelSet& kernels);

// An error unless both vocabularies have the same tokens. Either may have some more behind them,
// with which models are padded.
Status check_draft_vocabulary(const text::Tokenizer& target, const text::Tokenizer& draft);

}  // namespace pagoda::app
