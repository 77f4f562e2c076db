#include "model/kv_groups.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

namespace pagoda::model {
namespace {

using kv::memory::Element;
using kv::memory::Elements;

Elements elements_of(const Config& config, std::uint32_t layer, const KvCacheDtype& dtype,
                     Elements standard) {
  const bool skipped = std::ranges::count(dtype.skip_layers, layer) > 0 ||
                       (dtype.skip_windows && config.attention[layer].window > 0);
  const Elements elements = skipped ? standard : dtype.elements(standard);
  // A latent is key and value.
  return config.latent.rank > 0 ? Elements(elements.keys) : elements;
}

}  // namespace

Status check_kv_cache_dtype(const Config& config, const KvCacheDtype& dtype) {
  for (const std::uint32_t layer : dtype.skip_layers) {
    if (layer < config.layers) continue;
    return Error{ErrorCode::kOutOfRange,
                 fmt::format("`kv_cache_dtype_skip_layers`: {}, but the model has layers 0 to {}",
                             layer, config.layers - 1)};
  }
  if (config.latent.rank > 0 && dtype.values && dtype.values != dtype.keys) {
    return Error{ErrorCode::kUnsupported,
                 "`cache_type_v`: the model keeps one latent vector as key and value (MLA), so "
                 "that values have the type of keys: choose both by `kv_cache_dtype`"};
  }
  for (std::uint32_t layer = 0; layer < config.layers; ++layer) {
    const HeadShape heads = config.heads_of(layer);
    const Elements elements = elements_of(config, layer, dtype, Element::kBF16);
    const auto fits = [](Element element, std::uint32_t dimensions) {
      return dimensions % kv::memory::dimension_multiple(element) == 0;
    };
    if (fits(elements.keys, heads.key_dim) && fits(elements.values, heads.value_dim)) continue;
    return Error{ErrorCode::kUnsupported,
                 fmt::format("`kv_cache_dtype`: int4 needs heads of a multiple of 32 dimensions; "
                             "layer {} has {} key and {} value dimensions: use int8",
                             layer, heads.key_dim, heads.value_dim)};
  }
  return ok_status();
}

Status check_gpu_kv_cache_dtype(const KvCacheDtype& dtype) {
  const Elements elements = dtype.elements(Element::kBF16);
  const bool kept = elements.keys == Element::kBF16 || elements.keys == Element::kF16 ||
                    elements.keys == Element::kE4M3;
  if (!kept || elements.keys != elements.values) {
    return Error{ErrorCode::kUnsupported,
                 "`kv_cache_dtype`: the GPU keeps keys and values as bf16, fp16 or fp8"};
  }
  if (!dtype.skip_layers.empty() || dtype.skip_windows) {
    return Error{ErrorCode::kUnsupported,
                 "`kv_cache_dtype_skip_layers`: the GPU keeps all layers alike"};
  }
  return ok_status();
}

kv::memory::CacheGroupPlan plan_kv_groups(const Config& config, const kernels::KernelSet& kernels,
                                          const KvCacheDtype& dtype, std::uint32_t block_tokens) {
  std::vector<kv::memory::LayerKind> layers;
  for (std::uint32_t layer = 0; layer < config.layers - config.shared_kv_layers; ++layer) {
    const HeadShape heads = config.heads_of(layer);
    const Elements elements = elements_of(config, layer, dtype, kernels.kv_element);
    // A column is a run of units.
    const bool in_columns = kv::memory::unit_count(elements.keys, heads.key_dim) %
                                kv::memory::run_units(elements.keys) ==
                            0;
    const kv::memory::PageLayout one_layer = {
        .elements = elements,
        .block_tokens = block_tokens,
        .layers = 1,
        .kv_heads = heads.kv_heads,
        .key_dim = heads.key_dim,
        .value_dim = heads.value_dim,
        .value_order = kernels.value_order,
        .key_order = in_columns ? kernels.key_order : kv::memory::KeyOrder::kRows,
        .values_in_keys = config.latent.rank > 0};
    layers.push_back({config.attention[layer], one_layer});
  }
  return kv::memory::plan_cache_groups(layers);
}

}  // namespace pagoda::model
