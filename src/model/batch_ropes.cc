#include "model/batch_ropes.h"

namespace pagoda::model {

BatchRopes::BatchRopes(const Config& config, std::span<const float> divisors, std::size_t rows_max)
    : config_(config) {
  for (const RopeConfig& rope : config.ropes) {
    Angles& made = ropes_.emplace_back(
        Angles{RopeTable(rope, ropes_.empty() ? divisors : std::span<const float>()), {}, {}});
    made.cosines.resize(rows_max * made.table.pairs());
    made.sines.resize(rows_max * made.table.pairs());
  }
}

kernels::RopeRow BatchRopes::row(std::uint32_t layer, std::size_t row) const {
  if (config_.rope_of(layer) == kNoRope) return {};
  const Angles& rope = ropes_[config_.rope_of(layer)];
  const std::size_t pairs = rope.table.pairs();
  return {.cosines = rope.cosines.data() + row * pairs,
          .sines = rope.sines.data() + row * pairs,
          .pairs = pairs,
          .pairing = config_.ropes[config_.rope_of(layer)].pairing};
}

void BatchRopes::fill(std::size_t row, std::uint64_t position) {
  for (Angles& rope : ropes_) {
    const std::size_t at = row * rope.table.pairs();
    rope.table.fill(position, rope.cosines.data() + at, rope.sines.data() + at);
  }
}

}  // namespace pagoda::model
