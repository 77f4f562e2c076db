// Division says which part of a model each of several ranks computes.
//
// The outputs of a matrix are divided, a sum over its inputs never is: every output is added up on
// one rank in the one order that kernels have (kernels/ops.h), so that results do not depend on the
// number of ranks. Heads are divided by KV head, of latents (which all ranks keep) by query head;
// experts are divided as a whole; everything else is divided by panels. Where parts do not divide
// the first ranks have one more, and a rank may have none. A pure function of config and counts.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "kv/memory/cache_groups.h"
#include "model/config.h"

namespace pagoda::model {

// A Cut divides columns, heads or experts: rank r has [begins[r], begins[r + 1]).
struct Cut {
  std::vector<std::size_t> begins;  // [ranks + 1]

  std::size_t begin(std::size_t rank) const { return begins[rank]; }
  std::size_t count(std::size_t rank) const { return begins[rank + 1] - begins[rank]; }
  std::size_t all() const { return begins.back(); }
};

// Cuts `items` so that all ranks have about as many; ranks begin at multiples of `together`.
Cut cut_evenly(std::size_t items, std::size_t ranks, std::size_t together = 1);
// The columns of items that have `factor` columns each.
Cut widened(const Cut& cut, std::size_t factor);

struct LayerDivision {
  Cut heads;     // query heads
  Cut kv_heads;  // of a latent, which all keep, the first rank has it
  Cut queries;   // columns of the query projection's outputs
  Cut keys;      // columns of the key projection's; none where the layer keeps no rows
  Cut mixed;     // columns of the output projection's inputs
  Cut hidden;    // columns of the network that every token uses; none where there is no such
};

// The heads of a layer that one rank computes.
struct HeadShare {
  std::uint32_t first_head = 0;
  std::uint32_t heads = 0;
  std::uint32_t group = 0;  // query heads per KV head; of a latent, all of the rank's
  std::uint32_t first_kv_head = 0;
  HeadShape shape;  // its KV heads
};

class Division {
 public:
  Division(const Config& config, std::uint32_t rank, std::uint32_t ranks);

  std::uint32_t rank() const { return rank_; }
  std::uint32_t ranks() const { return ranks_; }
  bool is_whole() const { return ranks_ == 1; }
  const LayerDivision& layer(std::uint32_t index) const { return layers_[index]; }
  const HeadShare& heads(std::uint32_t layer) const { return shares_[layer]; }
  const Cut& width() const { return width_; }
  const Cut& vocabulary() const { return vocabulary_; }
  const Cut& experts() const { return experts_; }

  // Returns the pages of this rank: the same groups and block ids, with its heads alone. A rank
  // without heads has pages of kNoHeadsBytes, so that its blocks exist.
  kv::memory::CacheGroupPlan divide(const kv::memory::CacheGroupPlan& plan) const;
  static constexpr std::size_t kNoHeadsBytes = 64;

 private:
  std::uint32_t rank_;
  std::uint32_t ranks_;
  Cut width_;
  Cut vocabulary_;
  Cut experts_;
  std::vector<LayerDivision> layers_;
  std::vector<HeadShare> shares_;  // of this rank
};

// Returns the bytes that all ranks together send for a row whose logits nobody asked for, and for
// the logits of a row.
struct ExchangedBytes {
  std::uint64_t row = 0;
  std::uint64_t logits = 0;
};
ExchangedBytes exchanged_bytes(const Config& config, std::uint32_t ranks);

}  // namespace pagoda::model
