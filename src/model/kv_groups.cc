#include "model/kv_groups.h"

#include <vector>

namespace pagoda::model {

kv::memory::CacheGroupPlan plan_kv_groups(const Config& config, const kernels::KernelSet& kernels,
                                          std::optional<kv::memory::Element> element,
                                          std::uint32_t block_tokens) {
  std::vector<kv::memory::LayerKind> layers;
  for (std::uint32_t layer = 0; layer < config.layers - config.shared_kv_layers; ++layer) {
    const HeadShape heads = config.heads_of(layer);
    // A column is a pair of dimensions.
    const bool paired = heads.key_dim % 2 == 0;
    const kv::memory::PageLayout one_layer = {
        .element = element.value_or(kernels.kv_element),
        .block_tokens = block_tokens,
        .layers = 1,
        .kv_heads = heads.kv_heads,
        .key_dim = heads.key_dim,
        .value_dim = heads.value_dim,
        .value_order = kernels.value_order,
        .key_order = paired ? kernels.key_order : kv::memory::KeyOrder::kRows,
        .values_in_keys = config.latent.rank > 0};
    layers.push_back({config.attention[layer], one_layer});
  }
  return kv::memory::plan_cache_groups(layers);
}

}  // namespace pagoda::model
