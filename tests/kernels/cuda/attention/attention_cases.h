// The shapes with which attention is tested on a GPU.
#pragma once

#include <cstdint>
#include <ostream>
#include <utility>
#include <vector>

#include "kernels/cuda/attention/cached_row.h"

namespace pagoda::gpu_test {

using kv::memory::Element;
using kv::memory::Elements;

struct AttentionCase {
  Elements elements;
  std::uint32_t dim;
  std::uint32_t block_tokens;
  std::uint32_t heads;
  std::uint32_t kv_heads;
  std::uint32_t window;
  float cap = 0;
  bool sinks = false;
  // Of the sequences' KV policy.
  std::uint32_t policy_window = 0;
  std::uint32_t policy_sinks = 0;
};
inline void PrintTo(const AttentionCase& c, std::ostream* out) {
  *out << cache_name(c.elements) << " heads of " << c.dim << ", " << c.heads << " to " << c.kv_heads
       << ", blocks of " << c.block_tokens << ", window " << c.window << ", cap " << c.cap
       << (c.sinks ? ", sinks" : "") << ", policy " << c.policy_sinks << "+" << c.policy_window;
}

inline std::vector<AttentionCase> all_cases() {
  std::vector<AttentionCase> cases;
  for (const Element element : {Element::kBF16, Element::kF16, Element::kE4M3}) {
    for (const std::uint32_t dim : {64u, 128u, 256u}) {
      cases.push_back({element, dim, 16, 2, 2, 0});
      cases.push_back({element, dim, 32, 3, 1, 100});
      cases.push_back({element, dim, 64, 8, 2, 0});
      cases.push_back({element, dim, 128, 8, 1, 300});
      cases.push_back({element, dim, 16, 24, 1, 513});
    }
    // The kernel of all other heads.
    for (const std::uint32_t dim : {16u, 80u, 96u, 112u, 192u, 272u, 512u}) {
      cases.push_back({element, dim, 16, 2, 2, 0});
      cases.push_back({element, dim, 64, 3, 1, 100});
      cases.push_back({element, dim, 128, 24, 1, 300, 5.0f, true});
    }
    cases.push_back({element, 64, 16, 8, 1, 128, 0.0f, true});
    cases.push_back({element, 128, 32, 4, 2, 0, 0.0f, true});
    cases.push_back({element, 128, 16, 4, 2, 90, 4.0f});
    cases.push_back({element, 256, 16, 8, 4, 0, 50.0f});
  }
  return cases;
}

// Every other pair of elements, by every kernel.
inline std::vector<AttentionCase> pair_cases() {
  std::vector<AttentionCase> cases;
  for (const Elements elements : kGpuPairs) {
    if (elements.keys == elements.values &&
        (kv::memory::unit_bytes(elements.keys) == 2 || elements.keys == Element::kE4M3)) {
      continue;
    }
    for (const std::uint32_t dim : {64u, 128u, 256u}) {
      cases.push_back({elements, dim, 16, 8, 2, 0});
      cases.push_back({elements, dim, 128, 24, 1, 300, 0.0f, true});
    }
    for (const std::uint32_t dim : {32u, 96u, 192u, 512u}) {
      cases.push_back({elements, dim, 16, 4, 2, 0});
      cases.push_back({elements, dim, 64, 3, 1, 100, 5.0f, true});
    }
    if (elements.values == Element::kInt4) continue;  // has rows of whole groups
    cases.push_back({elements, 80, 32, 2, 2, 0});
  }
  return cases;
}

// Policies: windows, sinks within a tile, a split and beyond one; small windows, so that all rows
// of a tile see a gap, and larger ones, so that some do.
inline std::vector<AttentionCase> policy_cases() {
  std::vector<AttentionCase> cases;
  for (const Elements elements :
       {Elements(Element::kBF16), Elements(Element::kE4M3), Elements(Element::kInt8),
        Elements(Element::kInt8, Element::kInt4), Elements(Element::kBF16, Element::kInt8)}) {
    const std::pair<std::uint32_t, std::uint32_t> policies[] = {
        {100, 0}, {100, 4}, {250, 5}, {300, 70}, {120, 300}};
    for (const auto& [window, sinks] : policies) {
      cases.push_back({elements, 128, 16, 8, 2, 0, 0.0f, false, window, sinks});
      cases.push_back({elements, 64, 64, 3, 1, 0, 0.0f, true, window, sinks});
      cases.push_back({elements, 96, 32, 2, 2, 0, 5.0f, true, window, sinks});
    }
    cases.push_back({elements, 256, 16, 4, 1, 0, 0.0f, false, 200, 4});
    cases.push_back({elements, 128, 16, 8, 2, 90, 0.0f, false, 200, 4});  // keeps its own window
  }
  return cases;
}

}  // namespace pagoda::gpu_test
