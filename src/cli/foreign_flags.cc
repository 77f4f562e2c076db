#include "cli/foreign_flags.h"

#include <fmt/format.h>

#include <algorithm>

#include "cli/foreign_flag_rows.h"

namespace pagoda::cli {
namespace {

constexpr std::string_view kYes = "true|True|on|1";
constexpr std::string_view kNo = "false|False|off|0";

// A level stands right behind vLLM's -O: "-O3".
bool has_glued_level(std::string_view word) {
  return word.size() == 3 && word.starts_with("-O") && word[2] >= '0' && word[2] <= '3';
}

bool is_number(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789.") == std::string_view::npos;
}

// Returns the name of a flag as tables write it.
std::string plain_name(std::string_view word) {
  if (has_glued_level(word)) return std::string(word.substr(0, 2));
  std::string flag(word.substr(0, word.find('=')));
  std::replace(flag.begin(), flag.end(), '_', '-');
  return flag;
}

const IdleFlag* find_idle(std::string_view word) {
  const std::string name = plain_name(word);
  const std::span<const IdleFlag> rows = idle_flag_rows();
  const auto found =
      std::find_if(rows.begin(), rows.end(), [&](const IdleFlag& row) { return row.flag == name; });
  return found == rows.end() ? nullptr : &*found;
}

bool has(std::span<const std::string> known, std::string_view flag) {
  return std::find(known.begin(), known.end(), flag) != known.end();
}

// Is `value` one of "on|off"?
bool is_among(std::string_view values, std::string_view value) {
  if (values == "N") return !value.starts_with("--");
  while (!values.empty()) {
    const std::size_t end = std::min(values.find('|'), values.size());
    if (values.substr(0, end) == value) return true;
    values.remove_prefix(std::min(end + 1, values.size()));
  }
  return false;
}

// "{\"temperature\": N}" with the number that was typed; other values are never shown.
std::string with_number(std::string_view more, std::string_view value) {
  std::string text(more);
  const std::size_t at = text.find("N}");
  if (at != std::string::npos && is_number(value)) text.replace(at, 1, value);
  return text;
}

}  // namespace

std::optional<std::string> foreign_flag_hint(std::string_view word,
                                             std::span<const std::string> known,
                                             std::string_view next) {
  const std::string_view shown = word.substr(0, word.find('='));
  const std::string_view value = shown.size() < word.size() ? word.substr(shown.size() + 1) : next;
  const std::string name = plain_name(word);
  for (const ForeignFlag& row : foreign_flag_rows()) {
    if (row.flag != name) continue;
    if (!row.here.starts_with("--")) {
      return fmt::format("{}'s {}: {}", row.program, shown, row.here);
    }
    if (has(known, row.here)) {
      const std::string more = with_number(row.more, value);
      return fmt::format("{}'s {} is {}{}{}", row.program, shown, row.here,
                         more.starts_with(' ') ? more : " here",
                         more.starts_with(' ') ? " here" : more);
    }
  }
  if (const IdleFlag* const idle = find_idle(word)) {
    const bool is_refused =
        idle->values.empty() && shown.size() < word.size() && is_among(kNo, value);
    if (is_refused) {
      return fmt::format("{}'s {} is not possible here: {}", idle->program, word, idle->why);
    }
    return fmt::format("{}'s {} does nothing here: {}", idle->program, shown, idle->why);
  }
  constexpr std::string_view kNegation = "--no-";
  if (!name.starts_with(kNegation)) return std::nullopt;
  const IdleFlag* const asked = find_idle("--" + name.substr(kNegation.size()));
  if (asked == nullptr) return std::nullopt;
  return fmt::format("{}'s {} is not possible here: {}", asked->program, shown, asked->why);
}

std::optional<TakenFlag> take_idle_flag(std::string_view word, std::string_view next,
                                        std::span<const std::string> known) {
  const IdleFlag* const idle = find_idle(word);
  if (idle == nullptr || has(known, plain_name(word))) return std::nullopt;
  const std::string_view shown = word.substr(0, word.find('='));
  const bool is_joined = shown.size() < word.size();
  if (has_glued_level(word)) next = {};
  const std::string_view value = is_joined ? word.substr(shown.size() + 1) : next;
  const bool has_value =
      !value.empty() && is_among(idle->values.empty() ? kYes : idle->values, value);
  if (idle->needs_value && !has_value) return std::nullopt;
  // A thing that is always so cannot be switched off.
  if (idle->values.empty() && (is_joined ? !has_value : is_among(kNo, value))) return std::nullopt;
  return TakenFlag{fmt::format("{}'s {} does nothing here: {}", idle->program, shown, idle->why),
                   has_value && !is_joined ? std::size_t{2} : std::size_t{1}};
}

bool is_foreign_flag(std::string_view word) {
  const std::string name = plain_name(word);
  const std::span<const ForeignFlag> rows = foreign_flag_rows();
  return find_idle(word) != nullptr ||
         std::any_of(rows.begin(), rows.end(),
                     [&](const ForeignFlag& row) { return row.flag == name; });
}

}  // namespace pagoda::cli
