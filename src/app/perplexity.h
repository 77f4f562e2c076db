// Perplexity by the method others publish (llama.cpp's): a text is cut into windows, each read
// alone, the first token of each replaced by the model's first one where it wants one; of a
// window's second half every token is scored.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "app/offline_batch.h"
#include "base/clock.h"
#include "base/result.h"
#include "base/token_id.h"
#include "engine/backends/backend.h"
#include "text/tokenizer.h"

namespace pagoda::app {

// Perplexity and the standard error of its estimate; 0 of nothing.
struct Perplexity {
  double value = 0;
  double error = 0;
};
Perplexity perplexity_of(std::span<const float> logprobs);

struct PerplexityWindows {
  std::uint32_t tokens = 512;  // of a window
  std::size_t windows = 0;     // that are read, of the text's first
  std::function<void(std::size_t done, std::size_t all)> on_window = {};
  std::function<bool()> cancelled = {};
};

// Returns the log-probabilities of the scored tokens of all windows. The text has that many windows
// at least, and the backend's context holds a window and one token more.
Result<std::vector<float>> score_windows(engine::Backend& backend, const text::Tokenizer& tokenizer,
                                         std::span<const TokenId> text,
                                         const PerplexityWindows& windows, const Clock& clock);

}  // namespace pagoda::app
