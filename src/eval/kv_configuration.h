// KV formats and KV policies as configurations, by their names.
#pragma once

#include <string>

#include "base/result.h"
#include "eval/configuration.h"
#include "kv/kv_policy.h"
#include "model/kv_cache_dtype.h"

namespace pagoda::eval {

inline constexpr char kPolicyMark = '@';  // between a format and a policy

// Returns the configuration of a KV format (app::parse_kv_dtype), or of one with a KV policy behind
// it, as in int8@streaming:4+1024. The error about another name lists those that are known.
Result<EvalConfiguration> kv_configuration(const std::string& name);
// The name of such a configuration: `dtype` may go on behind a space (app::with_skipped_layers).
std::string with_kv_policy(std::string dtype, const kv::KvPolicy& policy);

// The same configuration with the layers that `skipped` names left out.
EvalConfiguration without_layers(const EvalConfiguration& configuration,
                                 const model::KvCacheDtype& skipped);

}  // namespace pagoda::eval
