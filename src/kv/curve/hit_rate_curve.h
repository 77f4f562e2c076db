// Estimates which share of the blocks that requests ask for a cache of C blocks would have had, for
// every C, while the cache runs at one size.
//
// With lru a block is there exactly when fewer than C others were used since it was (its *reuse
// distance*), and what comes before it in its prompt is there too, for prompts are used from tail
// to head. Distances of all blocks would take memory for every block ever seen; here
//
//   a block is *sampled* when its identity, a hash, is below a threshold: a share R of all blocks,
//   the same ones every time. So many sampled ones since stand for 1/R times as many, and a lookup
//   for 1/R lookups. When the sample is full the threshold falls by an eighth, and those above it
//   are forgotten (Waldspurger et al., "Efficient MRC construction with SHARDS", FAST 2015: the
//   fixed-size form);
//   a block that is asked for again and again is *hot*, whatever its identity, and stands for
//   itself: the one system prompt is in the sample or not, and would spoil the figure either way.
//   Who is hot is voted on: of all blocks that share a cell by identity, one that has more uses
//   than the others together holds it (Boyer and Moore's majority vote);
//   how many lookups the sampled ones should stand for is known; they are weighed so that they do.
//   (SHARDS' own adjustment adds what is missing at distance 1, as if it were all of hot blocks:
//   those are counted here, and what else a sample lacks lies at any distance. Measured:
//   docs/notes/hit_rate_curve.md.)
//
// A use of a block that is neither costs a vote and a comparison, of others log n; now and then
// (once in a thousand sampled uses at most) one linear pass of the sample. At most 2 MiB, taken at
// the start. Thread rule: its owner's, the cache's.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "kv/curve/distance_histogram.h"
#include "kv/curve/recency_order.h"

namespace pagoda::kv {

struct HitRateCurveOptions {
  std::uint16_t sampled_max = 32768;  // at least 8
  std::uint16_t hot_max = 4096;       // a power of two
};

class HitRateCurve {
 public:
  explicit HitRateCurve(const HitRateCurveOptions& options = {});

  // A request asks for these blocks, head first, and has them all once it ran. The identity of a
  // block stands for its tokens and all before them (kv/block_identity.h).
  void request(std::span<const std::uint64_t> identities);
  // A block that nobody asked for came, or was used.
  void use(std::uint64_t identity);
  // A block is used until now by who asked for it, or brought it, before: no vote for it.
  void renew(std::uint64_t identity);

  // Blocks found of those asked for, had there been so many; 0 when none was asked for.
  double hit_rate(std::uint64_t blocks) const;
  std::uint64_t blocks_asked() const { return blocks_asked_; }
  // The share of blocks that is sampled now.
  double sampling_rate() const;

  std::size_t bytes() const;
  // Stops the program when what is remembered contradicts itself (README: V1, V2). Linear.
  void check() const;

 private:
  static constexpr std::uint32_t kNone = UINT32_MAX;
  static constexpr std::uint32_t kVotesHot = 8;
  static constexpr std::uint32_t kVotesMax = 64;  // so that what was hot cools

  struct Sampled {
    std::uint32_t identity_low = 0;
    std::uint32_t identity_high = 0;
    std::uint32_t chain = kNone;  // the next of the same head; of an unused record: the next unused

    std::uint64_t identity() const { return std::uint64_t{identity_high} << 32 | identity_low; }
  };
  struct Cell {
    std::uint64_t identity = 0;
    std::uint32_t votes = 0;
    bool is_hot = false;
  };

  std::uint32_t cell_of(std::uint64_t identity) const {
    return static_cast<std::uint32_t>(identity % cells_.size());
  }
  RecencyOrder::Item hot_item(std::uint32_t cell) const { return options_.sampled_max + cell; }
  std::uint32_t find(std::uint64_t identity) const;
  void look_up(std::uint64_t identity);
  std::uint64_t distance(RecencyOrder::Item item) const;
  void use_sampled(std::uint64_t identity);
  bool vote(std::uint64_t identity);
  void cool(std::uint32_t cell);
  std::optional<std::uint32_t> insert(std::uint64_t identity);
  void erase(std::uint32_t at);
  void lower_threshold();

  HitRateCurveOptions options_;
  std::uint64_t threshold_ = UINT64_MAX;  // identities below it are sampled
  std::vector<Sampled> sampled_;
  std::vector<std::uint32_t> heads_;  // of chains, by identity
  std::uint32_t unused_ = kNone;
  std::vector<Cell> cells_;
  RecencyOrder order_;  // of sampled_, then of hot cells
  std::uint64_t blocks_asked_ = 0;
  std::uint64_t hot_asked_ = 0;  // of them
  double sampled_weight_ = 0;    // what lookups of sampled blocks stand for: about all the others
  DistanceHistogram hot_distances_;
  DistanceHistogram sampled_distances_;
};

}  // namespace pagoda::kv
