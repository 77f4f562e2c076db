// The cache's flags that several commands take.
#pragma once

#include <string>
#include <vector>

#include "cli/flags.h"
#include "eval/configuration.h"
#include "kv/evict/policy.h"
#include "kv/kv_policy.h"
#include "model/kv_cache_dtype.h"

namespace pagoda::cli {

// --kv-cache-dtype: what cached keys and values are kept as; --cache-type-k and --cache-type-v
// (-ctk, -ctv) choose for one of them; --kv-cache-dtype-skip-layers leaves layers out. What is not
// given, or "auto", is the default of the device.
void add_kv_cache_dtype_options(const CommandSpec& command, model::KvCacheDtype& dtype);

// --kv-cache-dtype-skip-layers alone.
void add_skip_layers_option(const CommandSpec& command, model::KvCacheDtype& dtype);

// --kv: several configurations (eval/kv_configuration.h). Where it is not given they stay as they
// were.
inline constexpr const char* kEvaluatedByDefault = "fp8";
void add_kv_configurations_option(const CommandSpec& command,
                                  std::vector<eval::EvalConfiguration>& configurations);
// --policy: KV policies, each with the baseline's format, behind those of --kv. Where --kv was not
// given, instead of its default.
void add_policy_configurations_option(const CommandSpec& command,
                                      std::vector<eval::EvalConfiguration>& policies);

// --kv-policy: which tokens' KV a sequence keeps.
void add_kv_policy_option(const CommandSpec& command, kv::KvPolicy& policy);

// --kv-eviction: which reusable block of the cache goes first.
void add_kv_eviction_option(const CommandSpec& command, const kv::EvictionPolicy*& policy);

}  // namespace pagoda::cli
