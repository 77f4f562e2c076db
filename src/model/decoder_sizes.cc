#include "model/decoder_sizes.h"

namespace pagoda::model {

std::size_t query_floats_max(const Config& config) {
  return widest_of(config, [&](std::uint32_t layer) {
    return std::size_t{config.heads} * config.heads_of(layer).key_dim;
  });
}

std::size_t scratch_bytes(const Config& config, const kernels::KernelSet& kernels) {
  const std::size_t columns = std::max<std::size_t>(
      {config.width, config.hidden_width, config.experts.hidden_width, config.experts.shared_width,
       config.latent.query_rank, config.latent.rank, config.latent.plain_dim,
       widest_of(config, [&](std::uint32_t layer) { return config.mixed_width(layer); })});
  const std::size_t attention = widest_of(config, [&](std::uint32_t layer) {
    const HeadShape heads = config.heads_of(layer);
    const std::size_t queries = std::max(kernels.attention_queries, config.heads / heads.kv_heads);
    const std::size_t partials = 2 * kernels::partial_floats(queries, heads.value_dim);
    return kernels.attention_scratch(heads.key_dim, heads.value_dim) + partials * sizeof(float);
  });
  return std::max({kernels.matmul_scratch(columns), attention,
                   std::max(columns, query_floats_max(config)) * sizeof(float)});
}

}  // namespace pagoda::model
