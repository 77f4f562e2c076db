#include "bench/decode.h"

#include <fmt/format.h>

#include <algorithm>

namespace pagoda::bench {

std::optional<double> shared_step_seconds(const std::vector<std::vector<std::int64_t>>& times_ns) {
  std::int64_t begin_ns = 0;
  for (const std::vector<std::int64_t>& times : times_ns) {
    begin_ns = std::max(begin_ns, times.front());
  }
  const std::vector<std::int64_t>& first_to_end =
      *std::min_element(times_ns.begin(), times_ns.end(),
                        [](const auto& a, const auto& b) { return a.back() < b.back(); });
  // Its tokens count the steps: others of the same step come a moment later.
  const auto first = std::upper_bound(first_to_end.begin(), first_to_end.end(), begin_ns);
  const std::ptrdiff_t steps = first_to_end.end() - first;
  if (steps == 0) return std::nullopt;
  return seconds_between(begin_ns, first_to_end.back()) / static_cast<double>(steps);
}

Result<std::optional<double>> finish_together(BenchEngine& engine,
                                              const std::vector<PendingRequest>& pending) {
  std::vector<std::vector<std::int64_t>> times_ns;
  for (const PendingRequest& one : pending) {
    ASSIGN_OR_RETURN(TimedOutput answer, engine.finish(one));
    times_ns.push_back(std::move(answer.times_ns));
  }
  return shared_step_seconds(times_ns);
}

Result<double> decode_step_seconds(BenchEngine& engine,
                                   const std::vector<std::vector<TokenId>>& prompts,
                                   std::uint32_t new_tokens) {
  for (const std::vector<TokenId>& prompt : prompts) {
    RETURN_IF_ERROR(engine.generate(fixed_request(prompt, 1)));
  }
  std::vector<PendingRequest> pending;
  for (const std::vector<TokenId>& prompt : prompts) {
    ASSIGN_OR_RETURN(PendingRequest one, engine.submit(fixed_request(prompt, new_tokens)));
    pending.push_back(std::move(one));
  }
  ASSIGN_OR_RETURN(const std::optional<double> seconds, finish_together(engine, pending));
  if (!seconds) {
    return Error{ErrorCode::kOutOfRange,
                 fmt::format("`new_tokens`: {} are too few for {} sequences to run together",
                             new_tokens, prompts.size())};
  }
  return *seconds;
}

}  // namespace pagoda::bench
