// shared_prefix() counts the tokens that two token sequences share at their beginning.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <span>
#include <type_traits>

#include "base/token_id.h"

namespace pagoda::sched {

inline std::uint64_t shared_prefix(std::span<const TokenId> a, std::span<const TokenId> b) {
  static_assert(std::has_unique_object_representations_v<TokenId>);
  constexpr std::size_t kStride = 256;
  const std::size_t both = std::min(a.size(), b.size());
  std::size_t at = 0;
  while (at + kStride <= both && std::memcmp(&a[at], &b[at], kStride * sizeof(TokenId)) == 0) {
    at += kStride;
  }
  while (at < both && a[at] == b[at]) ++at;
  return at;
}

}  // namespace pagoda::sched
