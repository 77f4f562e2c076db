#include "server/api/retain.h"

#include <fmt/format.h>

#include "kv/retention.h"

namespace pagoda::server {
namespace {

constexpr std::int64_t kPriorityDefault = 50;
constexpr double kSecondsMax = static_cast<double>(engine::kRetainNsMax) * 1e-9;
constexpr double kSecondsMin = 0.001;

}  // namespace

std::optional<RetainField> read_retain(const Fields& fields, bool is_chat) {
  const Json* const object = fields.object("retain");
  if (object == nullptr) return std::nullopt;
  const Fields retain(*object, fields.path_of("retain"));
  retain.require("seconds");
  RetainField field;
  field.seconds = retain.number("seconds", kSecondsMin, kSecondsMax).value();
  field.priority = static_cast<std::uint32_t>(
      retain.integer("priority", 0, kv::kRetainPriorityMax).value_or(kPriorityDefault));
  if (const Json* const upto = retain.find("upto")) {
    field.upto = read_upto(*upto, retain.path_of("upto"), is_chat, true);
  }
  return field;
}

std::optional<engine::RetainParams> retain_params(const RetainField& field, const Prompt& prompt) {
  const std::uint64_t tokens = upto_tokens(field.upto, prompt);
  if (tokens == 0) return std::nullopt;
  return engine::RetainParams{.tokens = tokens,
                              .time_ns = static_cast<std::int64_t>(field.seconds * 1e9),
                              .priority = field.priority};
}

Json retain_json(const RetainField& field, const std::optional<engine::RetainOutcome>& outcome,
                 const std::string& budget_option) {
  std::string reason = outcome ? outcome->refused : "there is nothing to retain";
  if (outcome && !reason.empty() && !budget_option.empty()) {
    reason += fmt::format("; {} gives one", budget_option);
  }
  if (!reason.empty()) return {{"granted", false}, {"reason", reason}};
  return {{"granted", true},
          {"tokens", outcome->tokens},
          {"blocks", outcome->blocks},
          {"seconds", field.seconds},
          {"priority", field.priority}};
}

}  // namespace pagoda::server
