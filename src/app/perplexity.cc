#include "app/perplexity.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace pagoda::app {

Perplexity perplexity_of(std::span<const float> logprobs) {
  if (logprobs.empty()) return {};
  const auto count = static_cast<double>(logprobs.size());
  double sum = 0;
  double squares = 0;
  for (const float logprob : logprobs) {
    sum += double{logprob};
    squares += double{logprob} * double{logprob};
  }
  const double mean = sum / count;
  const double value = std::exp(-mean);
  const double deviation = std::sqrt(std::max(0.0, squares / count - mean * mean));
  return {value, value * deviation / std::sqrt(std::max(1.0, count - 1))};
}

Result<std::vector<float>> score_windows(engine::Backend& backend, const text::Tokenizer& tokenizer,
                                         std::span<const TokenId> text,
                                         const PerplexityWindows& windows, const Clock& clock) {
  std::vector<float> scores;
  for (std::size_t window = 0; window < windows.windows; ++window) {
    const std::span<const TokenId> part = text.subspan(window * windows.tokens, windows.tokens);
    engine::Request request;
    request.prompt.assign(part.begin(), part.end());
    if (tokenizer.add_bos() && tokenizer.bos()) request.prompt.front() = *tokenizer.bos();
    request.sampling.prompt_logprobs = 0;
    // The first token that is scored follows the first of the second half.
    request.prompt_logprobs_start = windows.tokens / 2 + 1;
    request.kv_policy_prompt_tokens = windows.tokens / 2 + 1;
    request.end.max_tokens = 1;
    std::vector<engine::Request> requests;
    requests.push_back(std::move(request));
    ASSIGN_OR_RETURN(const std::vector<OfflineReply> replies,
                     run_offline(backend, std::move(requests), clock,
                                 {.cancelled = windows.cancelled, .on_tokens = {}}));
    const std::vector<float>& found = replies.front().prompt_logprobs;
    scores.insert(scores.end(), found.begin(), found.end());
    if (windows.on_window) windows.on_window(window + 1, windows.windows);
  }
  return scores;
}

}  // namespace pagoda::app
