// Tells kernels and runners what is left of a sequence whose KV policy selects pages
// (kv/page_selection.h). Block tables of its groups hold the blocks that are left, without gaps:
// the token at position p stands in slot p - tokens dropped.
#pragma once

#include <cstdint>
#include <span>

namespace pagoda::kv::memory {

struct SelectedPages {
  std::span<const std::uint64_t> tokens_dropped = {};  // [group]; empty: nothing was
  // Queries at positions [observed_begin, observed_end) add to the counters.
  std::uint64_t observed_begin = 0;
  std::uint64_t observed_end = 0;
  // [group]: by slot, as many as there are tokens; nullptr where the group is not observed.
  std::span<std::uint64_t* const> counters = {};
  // From the counters of a KV head, or of a layer of the group, to those of the next; 0: they are
  // added up in the same ones.
  std::uint64_t head_stride = 0;
  std::uint64_t layer_stride = 0;

  std::uint64_t slot(std::uint32_t group, std::uint64_t position) const {
    return tokens_dropped.empty() ? position : position - tokens_dropped[group];
  }
};

}  // namespace pagoda::kv::memory
