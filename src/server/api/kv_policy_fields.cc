#include "server/api/kv_policy_fields.h"

#include <fmt/format.h>

#include <limits>
#include <string>

#include "server/api_error.h"

namespace pagoda::server {
namespace {

constexpr const char* kPolicyField = "kv_policy";
constexpr std::int64_t kPolicyTokensMax = std::numeric_limits<std::int32_t>::max();

std::uint32_t read_size(const Fields& policy, const char* name, std::int64_t least) {
  const auto size = policy.integer(name, least, kPolicyTokensMax);
  if (size) return static_cast<std::uint32_t>(*size);
  const std::string path = policy.path_of(name);
  throw ApiError(400, path + ": is missing, expected a number of tokens", path);
}

// Sets the size where the policy has one.
void read_optional_size(const Fields& policy, const char* name, std::uint32_t& size) {
  const auto given = policy.integer(name, 1, kPolicyTokensMax);
  if (given) size = static_cast<std::uint32_t>(*given);
}

kv::KvPolicy read_h2o(const Fields& fields) {
  kv::KvPolicy policy = kv::KvPolicy::h2o(read_size(fields, "budget", 1));
  read_optional_size(fields, "recent", policy.observed);
  return policy;
}

kv::KvPolicy read_snapkv(const Fields& fields) {
  kv::KvPolicy policy = kv::KvPolicy::snapkv(read_size(fields, "budget", 1));
  read_optional_size(fields, "window", policy.observed);
  read_optional_size(fields, "kernel", policy.kernel);
  return policy;
}

}  // namespace

std::optional<kv::KvPolicy> read_kv_policy(const Fields& fields) {
  const Json* const asked = fields.find(kPolicyField);
  if (asked == nullptr) return std::nullopt;
  const std::string path = fields.path_of(kPolicyField);
  if (asked->is_string()) {
    const Result<kv::KvPolicy> policy = kv::KvPolicy::parse(asked->get_ref<const std::string&>());
    if (!policy.ok()) throw ApiError(400, path + ": " + policy.error().message, path);
    return policy.value();
  }
  if (!asked->is_object()) refuse_type(path, *asked, "an object or a string");
  const Fields policy(*asked, path);
  const std::string_view type = policy.text("type").value_or("");
  if (type == "full") return kv::KvPolicy{};
  if (type == "window") return kv::KvPolicy{.window = read_size(policy, "window", 1)};
  if (type == "streaming") {
    return kv::KvPolicy{.window = read_size(policy, "window", 1),
                        .sinks = read_size(policy, "sinks", 0)};
  }
  if (type == "h2o" || type == "snapkv") {
    const kv::KvPolicy selects = type == "h2o" ? read_h2o(policy) : read_snapkv(policy);
    const Status checked = check_selection(selects);
    if (!checked.ok()) throw ApiError(400, path + ": " + checked.error().message, path);
    return selects;
  }
  const std::string type_path = policy.path_of("type");
  throw ApiError(
      400, type_path + ": expected \"full\", \"window\", \"streaming\", \"h2o\" or \"snapkv\"",
      type_path);
}

void judge_kv_policy(const Fields& fields, const ServedModel& model, CompletionRequest& request) {
  const std::optional<kv::KvPolicy>& policy = request.engine.kv_policy;
  if (!policy || *policy == model.engine.limits().kv_policy || !model.policy_quality) return;
  const PolicyQuality::Judgement found = model.policy_quality->judge(*policy);
  using Verdict = PolicyQuality::Verdict;
  if (found.is_refused) {
    const std::string path = fields.path_of(kPolicyField);
    const std::string why =
        found.verdict == Verdict::kFails
            ? fmt::format("does not keep the bounds of quality of this server: {}", found.reason)
            : "has no measured quality here, and this server takes none without; pagoda eval "
              "measures it";
    throw ApiError(400, fmt::format("{}: {} {}", path, policy->name(), why), path,
                   "kv_policy_refused");
  }
  request.policy_quality = found.verdict == Verdict::kPasses  ? "passes"
                           : found.verdict == Verdict::kFails ? "fails"
                                                              : "not measured";
}

Json kv_policy_json(const kv::KvPolicy& policy, std::uint64_t tokens_kept,
                    std::uint64_t tokens_dropped) {
  return {
      {"name", policy.name()}, {"tokens_kept", tokens_kept}, {"tokens_dropped", tokens_dropped}};
}

}  // namespace pagoda::server
