// The KV cache groups of a model on CPUs and GPUs.
#pragma once

#include <cstdint>

#include "base/result.h"
#include "kernels/ops.h"
#include "kv/memory/cache_groups.h"
#include "model/config.h"
#include "model/kv_cache_dtype.h"

namespace pagoda::model {

// Layers that keep rows of one shape for the same keys share a group. Layers that attend to the
// rows of others have none. Checked by check_kv_cache_dtype.
kv::memory::CacheGroupPlan plan_kv_groups(const Config& config, const kernels::KernelSet& kernels,
                                          const KvCacheDtype& dtype, std::uint32_t block_tokens);

// The same on GPUs, where rows are rows and the default is bf16. Checked by that and by
// check_gpu_kv_cache_dtype.
kv::memory::CacheGroupPlan plan_gpu_kv_groups(const Config& config, const KvCacheDtype& dtype,
                                              std::uint32_t block_tokens);

// Refuses elements that the model's rows cannot have, also values that differ from keys where a
// latent is both, and to skip layers that it does not have or that keep no rows.
Status check_kv_cache_dtype(const Config& config, const KvCacheDtype& dtype);

// Refuses pairs of elements that GPUs do not keep (kv/memory/element_range.h), by name.
Status check_gpu_kv_cache_dtype(const KvCacheDtype& dtype);

}  // namespace pagoda::model
