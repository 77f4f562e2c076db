#include "server/api/retain.h"

#include <fmt/format.h>

#include <algorithm>

#include "kv/retention.h"
#include "server/api_error.h"

namespace pagoda::server {
namespace {

constexpr std::int64_t kPriorityDefault = 50;
constexpr double kSecondsMax = static_cast<double>(engine::kRetainNsMax) * 1e-9;
constexpr double kSecondsMin = 0.001;

void read_upto(const Fields& retain, bool is_chat, RetainField& field) {
  const Json* const upto = retain.find("upto");
  if (upto == nullptr) return;
  const std::string path = retain.path_of("upto");
  if (upto->is_number()) {
    field.upto = RetainField::Upto::kTokens;
    field.tokens = static_cast<std::uint64_t>(read_integer(*upto, path, 1, INT32_MAX));
    return;
  }
  const std::string word = upto->is_string() ? upto->get<std::string>() : std::string();
  if (word == "system" && !is_chat) {
    throw ApiError(400, fmt::format("{}: \"system\" makes sense in a chat only", path), path);
  }
  if (word != "system" && word != "prompt") {
    refuse_type(path, *upto, "\"system\", \"prompt\" or a number of tokens");
  }
  field.upto = word == "system" ? RetainField::Upto::kSystem : RetainField::Upto::kPrompt;
}

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
  read_upto(retain, is_chat, field);
  return field;
}

std::optional<engine::RetainWish> retain_wish(const RetainField& field, const Prompt& prompt) {
  engine::RetainWish wish = {.tokens = prompt.tokens.size(),
                             .time_ns = static_cast<std::int64_t>(field.seconds * 1e9),
                             .priority = field.priority};
  switch (field.upto) {
    case RetainField::Upto::kPrompt:
      return wish;
    case RetainField::Upto::kTokens:
      wish.tokens = std::min(wish.tokens, field.tokens);
      return wish;
    case RetainField::Upto::kSystem:
      break;
  }
  const auto last =
      std::find(prompt.sources.rbegin(), prompt.sources.rend(), text::Source::kSystem);
  wish.tokens = static_cast<std::uint64_t>(prompt.sources.rend() - last);
  if (wish.tokens == 0) return std::nullopt;
  return wish;
}

Json retain_json(const RetainField& field, const std::optional<engine::RetainOutcome>& outcome) {
  const std::string reason = outcome ? outcome->refused : "there is nothing to retain";
  if (!reason.empty()) return {{"granted", false}, {"reason", reason}};
  return {{"granted", true},
          {"tokens", outcome->tokens},
          {"blocks", outcome->blocks},
          {"seconds", field.seconds},
          {"priority", field.priority}};
}

}  // namespace pagoda::server
