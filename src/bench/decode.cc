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

namespace {

// Submits all prompts at once, each of which the cache has by then.
Result<std::vector<PendingRequest>> submit_together(
    BenchEngine& engine, const std::vector<std::vector<TokenId>>& prompts,
    std::uint32_t new_tokens) {
  for (const std::vector<TokenId>& prompt : prompts) {
    RETURN_IF_ERROR(engine.generate(fixed_request(prompt, 1)));
  }
  std::vector<PendingRequest> pending;
  for (const std::vector<TokenId>& prompt : prompts) {
    ASSIGN_OR_RETURN(PendingRequest one, engine.submit(fixed_request(prompt, new_tokens)));
    pending.push_back(std::move(one));
  }
  return pending;
}

Error too_few(std::uint32_t new_tokens, std::size_t sequences) {
  return {ErrorCode::kOutOfRange,
          fmt::format("`new_tokens`: {} are too few for {} sequences to run together", new_tokens,
                      sequences)};
}

}  // namespace

Result<double> decode_step_seconds(BenchEngine& engine,
                                   const std::vector<std::vector<TokenId>>& prompts,
                                   std::uint32_t new_tokens) {
  ASSIGN_OR_RETURN(const std::vector<PendingRequest> pending,
                   submit_together(engine, prompts, new_tokens));
  ASSIGN_OR_RETURN(const std::optional<double> seconds, finish_together(engine, pending));
  if (!seconds) return too_few(new_tokens, prompts.size());
  return *seconds;
}

// Tokens of one step come together, so that steps are not counted by them: all tokens between the
// last beginning and the first end are, and a draft token that was accepted needed no step.
Result<DecodeStep> drafted_step(BenchEngine& engine,
                                const std::vector<std::vector<TokenId>>& prompts,
                                std::uint32_t new_tokens) {
  ASSIGN_OR_RETURN(const std::vector<PendingRequest> pending,
                   submit_together(engine, prompts, new_tokens));
  std::vector<TimedOutput> outputs;
  for (const PendingRequest& one : pending) {
    ASSIGN_OR_RETURN(outputs.emplace_back(), engine.finish(one));
  }
  std::int64_t begin_ns = INT64_MIN;
  std::int64_t end_ns = INT64_MAX;
  double all_tokens = 0;
  double all_steps = 0;
  for (const TimedOutput& output : outputs) {
    begin_ns = std::max(begin_ns, output.times_ns.front());
    end_ns = std::min(end_ns, output.times_ns.back());
    const auto behind_first = static_cast<double>(output.tokens.size() - 1);
    all_tokens += behind_first;
    all_steps += behind_first - static_cast<double>(output.record.drafts.accepted);
  }
  double tokens = 0;
  for (const TimedOutput& output : outputs) {
    tokens += static_cast<double>(std::ranges::count_if(
        output.times_ns, [&](std::int64_t at) { return at > begin_ns && at <= end_ns; }));
  }
  if (tokens == 0 || all_steps <= 0) return too_few(new_tokens, prompts.size());
  const double each_per_second =
      tokens / static_cast<double>(outputs.size()) / seconds_between(begin_ns, end_ns);
  const double tokens_each = all_tokens / all_steps;
  return DecodeStep{.seconds = tokens_each / each_per_second, .tokens_each = tokens_each};
}

}  // namespace pagoda::bench
