#include "model/weights_share.h"

#include <utility>

namespace pagoda::model {
namespace {

// A projection without rows stays one.
void keep_rows(Projection& projection, std::size_t first, std::size_t count) {
  if (projection.weight.rows > 0) projection = rows_of(projection, first, count);
}

void keep_rows(Projection& projection, const Cut& cut, std::uint32_t rank) {
  keep_rows(projection, cut.begin(rank), cut.count(rank));
}

template <class Item>
void keep_items(std::vector<Item>& items, std::size_t first, std::size_t count) {
  if (items.empty()) return;
  const auto begin = items.begin() + static_cast<std::ptrdiff_t>(first);
  items = std::vector<Item>(begin, begin + static_cast<std::ptrdiff_t>(count));
}

void share_layer(const Config& config, const Division& division, std::uint32_t index,
                 LayerWeights& layer) {
  const std::uint32_t rank = division.rank();
  const LayerDivision& cuts = division.layer(index);
  const HeadShare& heads = division.heads(index);
  if (config.latent.rank > 0) {
    const std::size_t query_dim = layer.query.weight.rows / config.heads;
    keep_rows(layer.query, heads.first_head * query_dim, heads.heads * query_dim);
    keep_items(layer.latent.key_up, heads.first_head, heads.heads);
    keep_items(layer.latent.value_up, heads.first_head, heads.heads);
  } else {
    keep_rows(layer.query, cuts.queries, rank);
    keep_rows(layer.key, cuts.keys, rank);
    keep_rows(layer.value, widened(cuts.kv_heads, heads.shape.value_dim), rank);
  }
  keep_items(layer.sinks, heads.first_head, heads.heads);
  keep_rows(layer.attention_output, division.width(), rank);
  keep_rows(layer.feed_forward.gate, cuts.hidden, rank);
  keep_rows(layer.feed_forward.up, cuts.hidden, rank);
  keep_rows(layer.feed_forward.down, division.width(), rank);
  const std::size_t first_expert = division.experts().begin(rank);
  for (std::size_t i = 0; i < layer.experts.experts.size(); ++i) {
    if (i - first_expert >= division.experts().count(rank)) layer.experts.experts[i] = {};
  }
}

}  // namespace

Weights share_weights(const Weights& weights, const Config& config, const Division& division) {
  Weights share = weights;
  if (division.is_whole()) return share;
  for (std::uint32_t layer = 0; layer < config.layers; ++layer) {
    share_layer(config, division, layer, share.layers[layer]);
  }
  Projection output = {.weight = share.output, .bias = {}};
  keep_rows(output, division.vocabulary(), division.rank());
  share.output = output.weight;
  return share;
}

}  // namespace pagoda::model
