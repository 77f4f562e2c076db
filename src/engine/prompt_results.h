// Results of a launch that are about prompt tokens: their scores and hidden states. Each function
// takes those of a sequence's chunk from the beginning of what is left of the launch's.
#pragma once

#include <cstddef>
#include <span>

#include "engine/open_request.h"
#include "sched/plan.h"

namespace pagoda::engine {

// Takes the scores that the launch computed for the prompt, and reports them.
void take_scores(OpenSequence& seq, const sched::ScheduledChunk& rows,
                 std::span<const TokenScore>& scores);

// Adds the hidden states that the launch computed, [tokens, width], to those of the tokens before
// them: the order of the sum is that of the tokens, however the prompt was cut into chunks.
void take_hidden(OpenSequence& seq, const sched::ScheduledChunk& rows, std::size_t width,
                 std::span<const float>& hidden);

}  // namespace pagoda::engine
