#include "server/api/cache_diagnostics.h"

#include <utility>

#include "server/api_error.h"

namespace pagoda::server {
namespace {

using Api = DiagnosticsField::Api;
using Difference = FingerprintDifference::Kind;

const char* anthropic_reason(Difference kind) {
  switch (kind) {
    case Difference::kNone:
      return nullptr;
    case Difference::kTools:
      return "tools_changed";
    case Difference::kSystem:
      return "system_changed";
    case Difference::kSession:
    case Difference::kFormat:
    case Difference::kOptions:
    case Difference::kCompacted:
    case Difference::kMessages:
      return "messages_changed";
  }
  return nullptr;
}

const char* openai_reason(Difference kind) {
  switch (kind) {
    case Difference::kNone:
      return nullptr;
    case Difference::kTools:
      return "tools_changed";
    case Difference::kFormat:
      return "text_format_changed";
    case Difference::kOptions:
      return "reasoning_effort_changed";
    case Difference::kSession:
      return "prompt_cache_key_changed";
    case Difference::kCompacted:
      return "context_compacted";
    case Difference::kSystem:
    case Difference::kMessages:
      return "input_changed";
  }
  return nullptr;
}

Json anthropic_json(const FingerprintDifference& found) {
  const char* const reason = anthropic_reason(found.kind);
  if (reason == nullptr) return nullptr;
  return {{"cache_miss_reason",
           {{"type", reason}, {"cache_missed_input_tokens", found.tokens_missed}}}};
}

Json openai_json(const FingerprintDifference& found) {
  const char* const reason = openai_reason(found.kind);
  if (reason == nullptr) return {{"type", "cache_hit"}};
  return {{"type", "cache_miss"},
          {"reason", reason},
          {"cache_missed_tokens", found.tokens_missed},
          {"comparison_reusable_tokens", found.tokens_reusable}};
}

}  // namespace

DiagnosticsField read_diagnostics(const Fields& fields) {
  if (const Json* const object = fields.object("diagnostics")) {
    const Fields members(*object, fields.path_of("diagnostics"));
    DiagnosticsField field = {.api = Api::kAnthropic};
    if (const auto id = members.text("previous_message_id")) field.earlier_id = std::string(*id);
    return field;
  }
  const Json* const object = fields.object("prompt_cache_options");
  if (object == nullptr) return {};
  const Fields options(*object, fields.path_of("prompt_cache_options"));
  const auto id = options.text("comparison_response_id");
  if (!id) return {};
  return {.api = Api::kOpenAi, .earlier_id = std::string(*id)};
}

Diagnosis diagnose(const DiagnosticsField& field, const std::optional<RequestFingerprint>& before,
                   const std::optional<RequestFingerprint>& now) {
  const bool is_anthropic = field.api == Api::kAnthropic;
  const char* const member = is_anthropic ? "diagnostics" : "prompt_cache_diagnostics";
  const auto told = [&](Json value) {
    return Diagnosis{.members = Json::object({{member, std::move(value)}})};
  };
  const auto missing = [&](const char* anthropic, const char* openai) {
    if (!is_anthropic) return told({{"type", openai}});
    return told({{"cache_miss_reason", {{"type", anthropic}}}});
  };
  if (!field.earlier_id) return told(nullptr);
  if (!before) return missing("previous_message_not_found", "comparison_response_not_found");
  // Blocks of a prompt under another salt are found only as far as they are public.
  if (!now || before->salt != now->salt) return missing("unavailable", "unavailable");
  const FingerprintDifference found = compare(*before, *now);
  Diagnosis diagnosis = told(is_anthropic ? anthropic_json(found) : openai_json(found));
  diagnosis.is_miss = found.kind != Difference::kNone;
  return diagnosis;
}

}  // namespace pagoda::server
