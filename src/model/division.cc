#include "model/division.h"

#include <algorithm>

#include "base/assert.h"
#include "base/thread_pool.h"
#include "kernels/ops.h"

namespace pagoda::model {
namespace {

LayerDivision divide_layer(const Config& config, std::uint32_t layer, std::size_t ranks) {
  const HeadShape shape = config.heads_of(layer);
  const bool is_latent = config.latent.rank > 0;
  LayerDivision made;
  made.kv_heads = cut_evenly(shape.kv_heads, ranks);
  made.heads = is_latent ? cut_evenly(config.heads, ranks)
                         : widened(made.kv_heads, config.heads / shape.kv_heads);
  made.queries = widened(made.heads, shape.key_dim);
  made.keys = widened(made.kv_heads, config.own_kv_heads(layer) > 0 ? shape.key_dim : 0);
  made.mixed = widened(made.heads, config.mixed_width(layer) / config.heads);
  made.hidden = cut_evenly(config.hidden_width_of(layer), ranks, kernels::kMatmulPanel);
  return made;
}

HeadShare share_of(const Config& config, std::uint32_t layer, const LayerDivision& division,
                   std::uint32_t rank) {
  const bool is_latent = config.latent.rank > 0;
  HeadShare share;
  share.shape = config.heads_of(layer);
  share.group = config.heads / share.shape.kv_heads;
  share.first_head = static_cast<std::uint32_t>(division.heads.begin(rank));
  share.heads = static_cast<std::uint32_t>(division.heads.count(rank));
  if (is_latent) {
    share.group = share.heads;
  } else {
    share.first_kv_head = static_cast<std::uint32_t>(division.kv_heads.begin(rank));
    share.shape.kv_heads = static_cast<std::uint32_t>(division.kv_heads.count(rank));
  }
  return share;
}

}  // namespace

Cut cut_evenly(std::size_t items, std::size_t ranks, std::size_t together) {
  const std::size_t parts = (items + together - 1) / together;
  Cut cut;
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    cut.begins.push_back(std::min(items, split_work(parts, rank, ranks).begin * together));
  }
  cut.begins.push_back(items);
  return cut;
}

Cut widened(const Cut& cut, std::size_t factor) {
  Cut made = cut;
  for (std::size_t& begin : made.begins) begin *= factor;
  return made;
}

Division::Division(const Config& config, std::uint32_t rank, std::uint32_t ranks)
    : rank_(rank),
      ranks_(ranks),
      width_(cut_evenly(config.width, ranks, kernels::kMatmulPanel)),
      vocabulary_(cut_evenly(config.vocabulary, ranks, kernels::kMatmulPanel)),
      experts_(cut_evenly(config.experts.router.experts, ranks)) {
  ASSERT(rank < ranks, "ranks count from 0");
  for (std::uint32_t layer = 0; layer < config.layers; ++layer) {
    layers_.push_back(divide_layer(config, layer, ranks));
    shares_.push_back(share_of(config, layer, layers_.back(), rank));
  }
}

kv::memory::CacheGroupPlan Division::divide(const kv::memory::CacheGroupPlan& plan) const {
  if (is_whole()) return plan;
  kv::memory::CacheGroupPlan made = plan;
  for (std::size_t layer = 0; layer < made.locations.size(); ++layer) {
    kv::memory::PageLayout& layout = made.layouts[made.locations[layer].group];
    layout.kv_heads = shares_[layer].shape.kv_heads;
    layout.unused_bytes = 0;
  }
  std::size_t page_bytes = kNoHeadsBytes;
  for (const kv::memory::PageLayout& layout : made.layouts) {
    page_bytes = std::max(page_bytes, layout.page_bytes());
  }
  for (kv::memory::PageLayout& layout : made.layouts) {
    layout.unused_bytes = page_bytes - layout.page_bytes();
  }
  return made;
}

ExchangedBytes exchanged_bytes(const Config& config, std::uint32_t ranks) {
  const std::uint64_t others = ranks - 1;
  std::uint64_t floats = 0;  // of a row that everyone gets
  for (std::uint32_t layer = 0; layer < config.layers; ++layer) {
    const HeadShape shape = config.heads_of(layer);
    if (config.qk_norm == QkNormSpan::kAllHeads) {
      floats += std::uint64_t{shape.key_dim} * (config.heads + config.own_kv_heads(layer));
    }
    floats += config.mixed_width(layer) + config.width;
    const std::uint64_t hidden = config.hidden_width_of(layer);
    if (hidden > 0) floats += hidden + config.width;
    if (config.has_experts(layer)) {
      floats += std::uint64_t{config.experts.router.chosen} * config.width;
    }
  }
  // Rank 0 has its own part of the logits, and of the flags of rows that are not finite.
  const std::uint64_t own = cut_evenly(config.vocabulary, ranks, kernels::kMatmulPanel).count(0);
  return {.row = (floats + 1) * others * sizeof(float),
          .logits = (config.vocabulary - own) * sizeof(float)};
}

}  // namespace pagoda::model
