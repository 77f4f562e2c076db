#include "hf/expert_keys.h"

namespace pagoda::hf {

Status write_experts(const JsonFields& config, const KeyWriter& keys, const char* count_field) {
  constexpr const char* kOther = "num_local_experts";
  const bool is_other = !config.has(count_field) && config.has(kOther);
  ASSIGN_OR_RETURN(const std::uint64_t experts, config.count(is_other ? kOther : count_field));
  ASSIGN_OR_RETURN(const std::uint64_t used, config.count("num_experts_per_tok"));
  keys.count("expert_count", experts);
  keys.count("expert_used_count", used);
  return ok_status();
}

}  // namespace pagoda::hf
