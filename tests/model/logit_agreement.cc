#include "model/logit_agreement.h"

#include <gtest/gtest.h>

#include <cstdio>

namespace pagoda::model {

void expect_agreement(const TestModel& model, const LogitDigest& oracle,
                      const kernels::KernelSet& set, const AgreementBound& bound,
                      std::size_t positions) {
  const std::size_t vocabulary = model.config().vocabulary;
  std::size_t same = 0;
  std::size_t seen = 0;
  double kl = 0;
  for (std::size_t w = 0; w < oracle.windows.size(); ++w) {
    const std::vector<TokenId>& window = oracle.windows[w];
    const Tokens tokens(window.begin(), window.begin() + static_cast<std::ptrdiff_t>(positions));
    const Logits logits =
        run_sequences(model, {.kernels = &set, .threads = 2, .element = bound.element}, {tokens})
            .front();
    for (std::size_t p = 0; p < positions; ++p, ++seen) {
      const Agreement one =
          compare(oracle.positions[w][p], logits.data() + p * vocabulary, vocabulary);
      same += one.same_top ? 1 : 0;
      kl += one.kl;
    }
  }
  const double share = static_cast<double>(same) / static_cast<double>(seen);
  const double mean = kl / static_cast<double>(seen);
  std::printf("%s, KV format %d: same top-1 at %.2f %% of %zu positions, mean KL %.3g\n",
              set.name.data(), static_cast<int>(bound.element), 100 * share, seen, mean);
  EXPECT_GE(share, bound.top_share_min);
  EXPECT_LE(mean, bound.kl_mean_max);
}

}  // namespace pagoda::model
