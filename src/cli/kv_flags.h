// The cache's flags that several commands take.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
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

// The KV format of one of these names as a configuration, or with a KV policy behind it, as in
// int8@streaming:4+1024; other names are listed in the error.
Result<eval::EvalConfiguration> kv_configuration(const std::string& name);
// The name of such a configuration: `dtype` may go on behind a space (app::with_skipped_layers).
std::string with_kv_policy(std::string dtype, const kv::KvPolicy& policy);

// The same configuration with the layers that `skipped` names left out.
eval::EvalConfiguration without_layers(const eval::EvalConfiguration& configuration,
                                       const model::KvCacheDtype& skipped);

// --kv: several of them. What is not given stays as it was.
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
