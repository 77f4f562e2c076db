#include "engine/logprobs.h"

#include <algorithm>

#include "base/elementary.h"
#include "engine/logit_order.h"

namespace pagoda::engine {
namespace {

double log_of_exp_sum(const kernels::KernelSet& kernels, std::span<const float> logits,
                      float best) {
  double sum = 0;
  for (std::size_t begin = 0; begin < logits.size(); begin += kLogitBlock) {
    const std::size_t count = std::min(kLogitBlock, logits.size() - begin);
    sum += double{kernels.exp_sum(logits.data() + begin, count, best)};
  }
  return best + natural_log(sum);
}

}  // namespace

Result<Logprobs> find_logprobs(std::span<const float> logits, TokenId chosen,
                               std::uint32_t top_count, SamplerScratch& scratch,
                               std::uint64_t position) {
  ASSERT(chosen.value() < logits.size(), "the chosen token has a logit");
  ASSIGN_OR_RETURN(const BestLogit best, find_argmax(scratch.kernels, logits, position));
  const double total = log_of_exp_sum(scratch.kernels, logits, best.logit);
  const auto entry = [&](std::uint32_t id, std::size_t rank) {
    return TokenLogprob{TokenId(id), static_cast<float>(double{logits[id]} - total),
                        static_cast<std::uint32_t>(rank)};
  };
  find_top_k(scratch.kernels, logits, top_count, scratch.first);
  std::vector<std::uint32_t>& ids = scratch.first.ids;
  std::sort(ids.begin(), ids.end(),
            [logits](std::uint32_t a, std::uint32_t b) { return comes_before(logits, a, b); });
  scratch.top.clear();
  for (const std::uint32_t id : ids) scratch.top.push_back(entry(id, scratch.top.size() + 1));
  return Logprobs{entry(chosen.value(), count_before(logits, chosen.value()) + 1), scratch.top};
}

}  // namespace pagoda::engine
