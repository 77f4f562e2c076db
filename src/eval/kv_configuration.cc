#include "eval/kv_configuration.h"

#include <algorithm>
#include <optional>
#include <string_view>

#include "app/kv_dtype.h"

namespace pagoda::eval {

std::string with_kv_policy(std::string dtype, const kv::KvPolicy& policy) {
  if (policy.is_full()) return dtype;
  return dtype.insert(std::min(dtype.find(' '), dtype.size()), kPolicyMark + policy.name());
}

Result<EvalConfiguration> kv_configuration(const std::string& name) {
  const std::size_t mark = std::min(name.find(kPolicyMark), name.size());
  kv::KvPolicy policy;
  if (mark < name.size()) {
    ASSIGN_OR_RETURN(policy, kv::KvPolicy::parse(std::string_view(name).substr(mark + 1)));
  }
  ASSIGN_OR_RETURN(const std::optional<kv::memory::Elements> elements,
                   app::parse_kv_dtype(name.substr(0, mark)));
  if (!elements) {
    return Error{ErrorCode::kInvalidArgument,
                 "auto is the default of a device: name what it keeps"};
  }
  return EvalConfiguration{
      .name = with_kv_policy(app::kv_dtype_name(*elements), policy),
      .apply = [dtype = model::KvCacheDtype(*elements), policy](engine::BackendOptions& options) {
        options.kv_cache_dtype = dtype;
        options.kv_policy = policy;
      }};
}

EvalConfiguration without_layers(const EvalConfiguration& configuration,
                                 const model::KvCacheDtype& skipped) {
  model::KvCacheDtype choice = kv::memory::Element::kBF16;  // any: the layers alone are named
  choice.skip_layers = skipped.skip_layers;
  choice.skip_windows = skipped.skip_windows;
  return {.name = app::with_skipped_layers(configuration.name, app::kv_skipped_layers(choice)),
          .apply = [apply = configuration.apply, choice](engine::BackendOptions& options) {
            apply(options);
            options.kv_cache_dtype.skip_layers = choice.skip_layers;
            options.kv_cache_dtype.skip_windows = choice.skip_windows;
          }};
}

}  // namespace pagoda::eval
