#include "sched/prompt_time.h"

#include <algorithm>

#include "sched/largest_fitting.h"

namespace pagoda::sched {
namespace {

constexpr double kMargin = 2;         // times the predictions' mean error
constexpr double kSureShare = 0.125;  // of the target
constexpr std::uint64_t kSureTokens = 16;

}  // namespace

void PromptTime::begin(const ItlLimit& limit, const StepWork& decodes) {
  is_bounded_ = true;
  costs_ = limit.costs;
  const double wanted_s = limit.target_s / (1 + kMargin * costs_.spread);
  seconds_left_ = std::max(wanted_s - costs_.seconds(decodes), limit.target_s * kSureShare);
  tokens_trusted_ = costs_.prompt_tokens_trusted;
  tokens_sure_ = kSureTokens;
}

std::uint64_t PromptTime::tokens_left(std::uint64_t tokens) const {
  const std::uint64_t trusted = std::min(tokens, tokens_trusted_);
  const std::uint64_t timed = largest_fitting(trusted, [&](std::uint64_t count) {
    const auto rows = static_cast<double>(count);
    return seconds(rows, rows * (rows + 1) / 2) <= seconds_left_;
  });
  return std::max(timed, std::min(tokens, tokens_sure_));
}

std::uint64_t PromptTime::tokens_of(const SequenceTask& task, std::uint64_t first,
                                    std::uint64_t tokens, double share) const {
  const std::uint64_t timed =
      largest_fitting(std::min(tokens, tokens_trusted_), [&](std::uint64_t count) {
        return seconds(static_cast<double>(count), query_key_pairs(task, first, count)) <=
               seconds_left_ * share;
      });
  const std::uint64_t sure = std::max<std::uint64_t>(tokens_sure_, 1);
  return std::max(timed, std::min(tokens, sure));
}

void PromptTime::take(const SequenceTask& task, std::uint64_t first, std::uint64_t tokens) {
  if (!is_bounded_) return;
  seconds_left_ -= seconds(static_cast<double>(tokens), query_key_pairs(task, first, tokens));
  tokens_trusted_ -= std::min(tokens_trusted_, tokens);
  tokens_sure_ -= std::min(tokens_sure_, tokens);
}

}  // namespace pagoda::sched
