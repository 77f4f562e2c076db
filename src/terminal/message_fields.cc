#include "terminal/message_fields.h"

#include <algorithm>
#include <optional>

namespace pagoda::terminal {
namespace {

constexpr char kMark = '`';

bool is_letter(char c) { return c >= 'a' && c <= 'z'; }
bool is_in_name(char c) { return is_letter(c) || (c >= '0' && c <= '9') || c == '_'; }
bool is_control(char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; }

// Returns the field that `rest`, the text behind a mark, begins with; nothing for other text.
std::optional<MessageField> leading_field(std::string_view rest) {
  const std::size_t end = rest.find(kMark);
  if (end == std::string_view::npos) return std::nullopt;
  const std::string_view text = rest.substr(0, end);
  const std::size_t equals = text.find('=');
  const bool has_value = equals != std::string_view::npos;
  const std::string_view name = text.substr(0, equals);
  const std::string_view value = has_value ? text.substr(equals + 1) : std::string_view();
  if (name.empty() || !is_letter(name.front()) ||
      !std::all_of(name.begin(), name.end(), is_in_name)) {
    return std::nullopt;
  }
  if (has_value && (value.empty() || std::any_of(value.begin(), value.end(), is_control))) {
    return std::nullopt;
  }
  return MessageField{text, name, value};
}

}  // namespace

std::string with_fields(std::string_view message,
                        const std::function<std::string(const MessageField&)>& word) {
  std::string result;
  while (!message.empty()) {
    const std::size_t mark = std::min(message.find(kMark), message.size());
    result += message.substr(0, mark);
    message.remove_prefix(mark);
    if (message.empty()) break;
    message.remove_prefix(1);
    if (const std::optional<MessageField> field = leading_field(message)) {
      result += word(*field);
      message.remove_prefix(field->text.size() + 1);
    } else {
      result += kMark;
    }
  }
  return result;
}

std::string with_plain_fields(std::string_view message) {
  return with_fields(message, [](const MessageField& field) { return std::string(field.text); });
}

}  // namespace pagoda::terminal
