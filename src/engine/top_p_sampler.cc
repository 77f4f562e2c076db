#include "engine/top_p_sampler.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/random.h"

namespace pagoda::engine {
namespace {

// A Field holds the tokens before one token in the row's order.
struct Field {
  float logit;
  std::uint32_t id;

  // The least logit that is in the field, for ids up to its own and for those from it on.
  float least_below_id() const { return logit; }
  float least_from_id() const {
    return std::nextafter(logit, std::numeric_limits<float>::infinity());
  }
  bool holds(std::uint32_t other, float other_logit) const {
    return other_logit >= (other < id ? least_below_id() : least_from_id());
  }
};

class WeightedRow {
 public:
  WeightedRow(std::span<const float> logits, const TopPParams& shape, SamplerScratch& scratch)
      : logits_(logits),
        kernels_(scratch.kernels),
        weights_(std::span(scratch.weights).first(logits.size())),
        masses_(std::span(scratch.block_masses).first(logit_blocks(logits.size()))),
        field_{-std::numeric_limits<float>::infinity(), static_cast<std::uint32_t>(logits.size())} {
    for (std::size_t block = 0; block < masses_.size(); ++block) {
      const std::size_t begin = block * kLogitBlock;
      masses_[block] = kernels_.sampling_weights({.x = logits_.data() + begin,
                                                  .count = end_of(block) - begin,
                                                  .best = shape.best,
                                                  .inverse_temperature = shape.inverse_temperature,
                                                  .min_p = shape.min_p,
                                                  .weights = weights_.data() + begin});
      field_mass_ += masses_[block];
    }
  }

  std::uint64_t field_mass() const { return field_mass_; }

  // Returns the token of the field at which the weights, added up by id, pass `target` <
  // field_mass().
  std::uint32_t find(std::uint64_t target) const {
    std::size_t block = 0;
    for (; target >= masses_[block]; ++block) target -= masses_[block];
    auto id = static_cast<std::uint32_t>(block * kLogitBlock);
    for (;; ++id) {
      if (!field_.holds(id, logits_[id])) continue;
      if (target < weights_[id]) return id;
      target -= weights_[id];
    }
  }

  // True: less than `head_mass` comes before the token. If not, the field shrinks to the tokens
  // before it.
  bool is_in_head(std::uint32_t id, double head_mass) {
    if (static_cast<double>(field_mass_ - weights_[id]) < head_mass) return true;
    const Field before = {logits_[id], id};
    std::uint64_t mass = 0;            // mass before the token, in the blocks walked
    std::uint64_t left = field_mass_;  // mass of the field, in the other blocks
    for (std::size_t block = 0; block < masses_.size(); ++block) {
      if (static_cast<double>(mass + left) < head_mass) return true;
      left -= masses_[block];
      if (masses_[block] != 0) masses_[block] = mass_in_block(before, block);
      mass += masses_[block];
    }
    if (static_cast<double>(mass) < head_mass) return true;
    field_ = before;
    field_mass_ = mass;
    return false;
  }

 private:
  std::size_t end_of(std::size_t block) const {
    return std::min((block + 1) * kLogitBlock, logits_.size());
  }

  std::uint64_t mass_in_block(const Field& field, std::size_t block) const {
    const std::size_t begin = block * kLogitBlock;
    const std::size_t end = end_of(block);
    const std::size_t turn = std::clamp<std::size_t>(field.id, begin, end);
    return kernels_.mass_from(logits_.data() + begin, weights_.data() + begin, turn - begin,
                              field.least_below_id()) +
           kernels_.mass_from(logits_.data() + turn, weights_.data() + turn, end - turn,
                              field.least_from_id());
  }

  std::span<const float> logits_;
  const kernels::KernelSet& kernels_;
  std::span<std::uint32_t> weights_;
  std::span<std::uint64_t> masses_;  // [block], mass of the field in each
  Field field_;
  std::uint64_t field_mass_ = 0;
};

}  // namespace

std::uint32_t sample_top_p(std::span<const float> logits, const TopPParams& shape,
                           const RandomKey& key, SamplerScratch& scratch) {
  WeightedRow row(logits, shape, scratch);
  const double head_mass = double{shape.top_p} * static_cast<double>(row.field_mass());
  for (std::uint64_t round = 0;; ++round) {
    const double unit = random_unit(key.seed, round << 32, key.position);
    const auto target = static_cast<std::uint64_t>(unit * static_cast<double>(row.field_mass()));
    const std::uint32_t id = row.find(target);
    if (row.is_in_head(id, head_mass)) return id;
  }
}

}  // namespace pagoda::engine
