// CurveStats: the hit rates that other sizes and other policies would have given, at one moment.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace pagoda::kv {

// Hit rates are of whole blocks of prompts: found of those asked for.
struct CurvePoint {
  std::uint64_t blocks = 0;  // of such a cache: pages of all groups
  double hit_rate = 0;
};

// Nothing: it cannot be known from a sample (EvictionPolicy::can_be_sampled), and the cache has
// more blocks than are followed.
struct PolicyRates {
  std::string_view policy;     // lives as long as the program
  std::optional<double> half;  // with half as many blocks
  std::optional<double> same;
  std::optional<double> twice;
};

struct CurveStats {
  static constexpr std::size_t kPoints = 12;
  static constexpr std::size_t kPoliciesMax = 12;

  std::uint64_t blocks = 0;        // of the cache; 0: it keeps no curve
  std::uint64_t blocks_asked = 0;  // so far
  double sampling_rate = 1;        // the share of blocks that the curve of lru follows
  std::string_view policy;         // the cache's own
  std::array<CurvePoint, kPoints> lru;
  std::array<PolicyRates, kPoliciesMax> rates;
  std::size_t policies = 0;  // in rates

  std::span<const PolicyRates> by_policy() const { return std::span(rates).first(policies); }
  // Returns the row of the cache's own policy; nullptr when there is no curve.
  const PolicyRates* own() const {
    for (const PolicyRates& row : by_policy()) {
      if (row.policy == policy) return &row;
    }
    return nullptr;
  }
};

}  // namespace pagoda::kv
