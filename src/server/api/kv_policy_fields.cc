#include "server/api/kv_policy_fields.h"

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
  const std::string type_path = policy.path_of("type");
  throw ApiError(400, type_path + ": expected \"full\", \"window\" or \"streaming\"", type_path);
}

Json kv_policy_json(const kv::KvPolicy& policy, std::uint64_t tokens_kept,
                    std::uint64_t tokens_dropped) {
  return {
      {"name", policy.name()}, {"tokens_kept", tokens_kept}, {"tokens_dropped", tokens_dropped}};
}

}  // namespace pagoda::server
