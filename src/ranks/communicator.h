// Communicator is how the ranks that compute one model together exchange what they computed.
//
// All ranks make the same calls in the same order. A call that fails, or that waits longer for
// another rank than the communicator's limit, is the last that waits: from then on calls return at
// once and leave their data unspecified, and failure() says why. So a forward pass needs no way
// out; whoever asked for it looks at failure() before using any result.
//
// Thread rule: one thread of a rank calls.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "base/result.h"

namespace pagoda::ranks {

inline constexpr std::uint32_t kRanksMax = 64;

class Communicator {
 public:
  virtual ~Communicator() = default;
  virtual std::uint32_t rank() const = 0;
  virtual std::uint32_t ranks() const = 0;

  // Part r of `data` is its bytes [offsets[r], offsets[r + 1]), of [ranks + 1] offsets that are the
  // same on all ranks. A rank brings its own part; on return every rank has all.
  virtual void gather(std::byte* data, std::span<const std::size_t> offsets) = 0;
  // The same, but rank 0 alone has all.
  virtual void gather_to_first(std::byte* data, std::span<const std::size_t> offsets) = 0;

  virtual const std::optional<Error>& failure() const = 0;
};

}  // namespace pagoda::ranks
