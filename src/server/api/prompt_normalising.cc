#include "server/api/prompt_normalising.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>

#include "server/api/date_text.h"

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

// The value of a label in a line, which a rule replaces.
struct LabelledValue {
  NormaliseRule rule;
  std::size_t begin;  // behind the label
  std::size_t end;
};

// Returns the end of "key=value; key=value;". The last pair may lack its semicolon at the end of
// the line; what is no pair stays.
std::size_t pairs_end(std::string_view text) {
  std::size_t end = 0;
  for (;;) {
    const std::size_t begin = std::min(text.find_first_not_of(' ', end), text.size());
    const std::size_t stop = std::min(text.find_first_of(" ;", begin), text.size());
    const std::string_view pair = text.substr(begin, stop - begin);
    const std::size_t equals = pair.find('=');
    if (equals == 0 || equals == std::string_view::npos) return end;
    if (stop == text.size()) return stop;
    if (text[stop] != ';') return end;
    end = stop + 1;
  }
}

std::optional<LabelledValue> find_value(std::string_view line) {
  std::size_t indent = 0;
  while (indent < kIndentMax && indent < line.size() &&
         (line[indent] == ' ' || line[indent] == '-')) {
    ++indent;
  }
  const std::string_view words = line.substr(indent);
  const auto value = [&](NormaliseRule rule, std::string_view label,
                         std::size_t (*end_of)(std::string_view)) -> std::optional<LabelledValue> {
    if (!words.starts_with(label)) return std::nullopt;
    const std::size_t bytes = end_of(words.substr(label.size()));
    if (bytes == 0) return std::nullopt;
    const std::size_t begin = indent + label.size();
    return LabelledValue{rule, begin, begin + bytes};
  };
  if (const auto found = value(NormaliseRule::kClaudeCode, kBillingHeader, pairs_end)) return found;
  for (const std::string_view label : kDateLabels) {
    if (const auto found = value(NormaliseRule::kDate, label, date_end)) return found;
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
    std::string_view line = std::string_view(text).substr(at, end - at);
    if (line.ends_with('\r')) line.remove_suffix(1);
    const std::optional<LabelledValue> value = find_value(line);
    if (value && rules.has(value->rule)) {
      const std::string fixed = std::string(line.substr(0, value->begin)) + std::string(kFixed);
      served.append(text, copied, at - copied);
      served += fixed;
      copied = at + value->end;
      replaced.push_back({value->rule, message, fixed,
                          std::string(line.substr(value->begin, value->end - value->begin))});
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
    if (role == message.end() || (*role != "system" && *role != "developer")) break;
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
  const std::optional<LabelledValue> value = find_value(line);
  return value ? rule_name(value->rule).data() : nullptr;
}

}  // namespace pagoda::server
