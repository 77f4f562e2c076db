// Acceptance estimates how likely a request's next draft token is accepted, from the request's own
// drafts: a moving average for every method and length of match, which begins with what is usual.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "speculate/method.h"

namespace pagoda::speculate {

class Acceptance {
 public:
  Acceptance();

  // Returns the probability that a token of a draft by this method is accepted where the tokens
  // before it are. `match`: so many last tokens were equal to those before the draft's source.
  double probability(DraftMethod method, std::uint32_t match) const;
  void note(DraftMethod method, std::uint32_t match, std::uint32_t drafted, std::uint32_t accepted);
  // A draft was found and did not pay: the estimate moves a little towards what is usual, so that a
  // text that changes is noticed.
  void note_unused(DraftMethod method, std::uint32_t match);

 private:
  static constexpr std::size_t kMatchClasses = 4;  // up to 3, 7, 15 tokens, and more

  // Tokens tried, older ones counting less, and those of them that were accepted.
  struct Rate {
    float accepted;
    float tried;
  };
  static std::size_t rate_index(DraftMethod method, std::uint32_t match);

  std::array<Rate, kMethodCount * kMatchClasses> rates_;
};

}  // namespace pagoda::speculate
