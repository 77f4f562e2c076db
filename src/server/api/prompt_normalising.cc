#include "server/api/prompt_normalising.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>

namespace pagoda::server {
namespace {

constexpr std::array<std::string_view, kNormaliseRules> kRuleNames = {"claude-code", "date"};
constexpr std::string_view kBillingHeader = "x-anthropic-billing-header:";
constexpr std::size_t kIndentMax = 8;
constexpr std::string_view kFixed = " -";  // in place of what changes

constexpr std::array<std::string_view, 8> kDateLabels = {
    "Today's date:",       "Today's date is",        "Today is",
    "Current date:",       "Current date and time:", "Current time:",
    "The current date is", "The current time is"};

// A line, or what is before its value, that a rule is for.
struct LineLabel {
  NormaliseRule rule;
  std::size_t bytes;  // of the line, up to what is replaced
};

std::optional<LineLabel> label_of(std::string_view line) {
  std::size_t indent = 0;
  while (indent < kIndentMax && indent < line.size() &&
         (line[indent] == ' ' || line[indent] == '-'))
    ++indent;
  const std::string_view words = line.substr(indent);
  if (words.starts_with(kBillingHeader)) {
    return LineLabel{NormaliseRule::kClaudeCode, indent + kBillingHeader.size()};
  }
  for (const std::string_view label : kDateLabels) {
    if (words.starts_with(label)) return LineLabel{NormaliseRule::kDate, indent + label.size()};
  }
  return std::nullopt;
}

void normalise_text(std::string& text, std::uint32_t message, const NormaliseRules& rules,
                    std::vector<NormalisedText>& replaced) {
  std::string served;
  std::size_t at = 0;
  std::size_t copied = 0;
  while (at < text.size() && replaced.size() < kNormalisedMax) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    const std::string_view line = std::string_view(text).substr(at, end - at);
    const std::optional<LineLabel> label = label_of(line);
    if (label && rules.has(label->rule) && label->bytes < line.size()) {
      const std::string fixed = std::string(line.substr(0, label->bytes)) + std::string(kFixed);
      served.append(text, copied, at - copied);
      served += fixed;
      copied = end;
      replaced.push_back({label->rule, message, fixed});
    }
    at = end + 1;
  }
  if (copied == 0) return;
  served.append(text, copied);
  text = std::move(served);
}

}  // namespace

std::string_view rule_name(NormaliseRule rule) {
  return kRuleNames[static_cast<std::size_t>(rule)];
}

Result<NormaliseRules> read_normalise_rules(std::string_view text) {
  NormaliseRules rules;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(','), text.size());
    const std::string_view word = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (word == rule_name(NormaliseRule::kClaudeCode)) {
      rules.claude_code = true;
    } else if (word == rule_name(NormaliseRule::kDate)) {
      rules.date = true;
    } else {
      return Error{ErrorCode::kInvalidArgument,
                   fmt::format("`normalise_prompts`: \"{}\" is no rule, expected claude-code or "
                               "date, with commas",
                               word)};
    }
  }
  return rules;
}

std::vector<NormalisedText> normalise_messages(Json& messages, const NormaliseRules& rules) {
  std::vector<NormalisedText> replaced;
  if (!rules.any() || !messages.is_array()) return replaced;
  for (std::uint32_t i = 0; i < messages.size(); ++i) {
    Json& message = messages[i];
    const auto role = message.find("role");
    if (role == message.end() || (*role != "system" && *role != "developer")) continue;
    const auto content = message.find("content");
    if (content == message.end()) continue;
    if (content->is_string()) {
      normalise_text(content->get_ref<std::string&>(), i, rules, replaced);
    }
    if (!content->is_array()) continue;
    for (Json& part : *content) {
      const auto text = part.find("text");
      if (text == part.end() || !text->is_string()) continue;
      normalise_text(text->get_ref<std::string&>(), i, rules, replaced);
    }
  }
  return replaced;
}

const char* rule_for(std::string_view line) {
  const std::optional<LineLabel> label = label_of(line);
  return label ? rule_name(label->rule).data() : nullptr;
}

}  // namespace pagoda::server
