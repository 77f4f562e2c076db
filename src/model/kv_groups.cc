#include "model/kv_groups.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <vector>

#include "kv/memory/element_range.h"

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

// The rows of every layer that keeps some, in rows.
std::vector<kv::memory::LayerKind> layer_kinds(const Config& config, const KvCacheDtype& dtype,
                                               Elements standard, std::uint32_t block_tokens) {
  std::vector<kv::memory::LayerKind> layers;
  for (std::uint32_t layer = 0; layer < config.layers - config.shared_kv_layers; ++layer) {
    const HeadShape heads = config.heads_of(layer);
    const kv::memory::PageLayout one_layer = {
        .elements = elements_of(config, layer, dtype, standard),
        .block_tokens = block_tokens,
        .layers = 1,
        .kv_heads = heads.kv_heads,
        .key_dim = heads.key_dim,
        .value_dim = heads.value_dim,
        .values_in_keys = config.latent.rank > 0};
    layers.push_back({config.attention[layer], one_layer});
  }
  return layers;
}

// Refuses to skip what the model does not have, or what keeps no rows to skip.
Status check_skipped_layers(const Config& config, const KvCacheDtype& dtype) {
  const std::uint32_t own = config.layers - config.shared_kv_layers;
  for (const std::uint32_t layer : dtype.skip_layers) {
    if (layer < own) continue;
    if (layer < config.layers) {
      return Error{ErrorCode::kOutOfRange,
                   fmt::format("`kv_cache_dtype_skip_layers`: {}, but that layer keeps no keys and "
                               "values: layers {} to {} attend to those of layers before them",
                               layer, own, config.layers - 1)};
    }
    return Error{ErrorCode::kOutOfRange,
                 fmt::format("`kv_cache_dtype_skip_layers`: {}, but the model has layers 0 to {}",
                             layer, config.layers - 1)};
  }
  const auto windows = std::span(config.attention).first(own);
  if (!dtype.skip_windows ||
      std::ranges::any_of(windows, [](const auto& layer) { return layer.window > 0; })) {
    return ok_status();
  }
  return Error{ErrorCode::kUnsupported,
               "`kv_cache_dtype_skip_layers`: sliding_window, but no layer of the model has a "
               "sliding window: name layers by their numbers"};
}

}  // namespace

Status check_kv_cache_dtype(const Config& config, const KvCacheDtype& dtype) {
  RETURN_IF_ERROR(check_skipped_layers(config, dtype));
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
  if (kv::memory::is_gpu_pair(dtype.elements(Element::kBF16))) return ok_status();
  return Error{ErrorCode::kUnsupported,
               "`kv_cache_dtype`: the GPU keeps keys and values as bf16, fp16, fp8, fp8_e5m2, int8 "
               "or int4, as k8v4, or bf16 or fp16 keys with int8 or fp8 values"};
}

kv::memory::CacheGroupPlan plan_kv_groups(const Config& config, const kernels::KernelSet& kernels,
                                          const KvCacheDtype& dtype, std::uint32_t block_tokens) {
  std::vector<kv::memory::LayerKind> layers =
      layer_kinds(config, dtype, kernels.kv_element, block_tokens);
  for (kv::memory::LayerKind& layer : layers) {
    // A column is a run of units.
    const Element keys = layer.layout.elements.keys;
    const bool in_columns =
        kv::memory::unit_count(keys, layer.layout.key_dim) % kv::memory::run_units(keys) == 0;
    layer.layout.value_order = kernels.value_order;
    if (in_columns) layer.layout.key_order = kernels.key_order;
  }
  return kv::memory::plan_cache_groups(layers);
}

kv::memory::CacheGroupPlan plan_gpu_kv_groups(const Config& config, const KvCacheDtype& dtype,
                                              std::uint32_t block_tokens) {
  return kv::memory::plan_cache_groups(layer_kinds(config, dtype, Element::kBF16, block_tokens));
}

}  // namespace pagoda::model
