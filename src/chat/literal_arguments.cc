#include "chat/literal_arguments.h"

#include <nlohmann/json.hpp>

#include "chat/json_stream.h"
#include "chat/literal.h"
#include "text/strict_json.h"

namespace pagoda::chat {
namespace {

constexpr std::size_t kNone = std::string_view::npos;

char closing(char bracket) {
  if (bracket == '(') return ')';
  return bracket == '[' ? ']' : '}';
}

bool is_name_byte(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
         c == '-' || c == '.' || c == '$' || static_cast<unsigned char>(c) >= 0x80;
}

// A descent over text that is complete. Every function appends JSON and returns false where the
// text is malformed.
class LiteralConverter {
 public:
  LiteralConverter(std::string_view text, std::string_view quote) : text_(text), quote_(quote) {}

  std::optional<std::string> keywords() {
    if (!take('(') || !members(')', '=', false)) return std::nullopt;
    return finished();
  }

  std::optional<std::string> quoted() {
    if (!take('{') || !members('}', ':', false)) return std::nullopt;
    return finished();
  }

 private:
  std::optional<std::string> finished() {
    skip_space();
    if (at_ != text_.size() || !nlohmann::json::accept(out_)) return std::nullopt;
    return std::move(out_);
  }

  void skip_space() {
    while (at_ < text_.size() && is_space(text_[at_])) ++at_;
  }

  bool take(char byte) {
    skip_space();
    if (at_ == text_.size() || text_[at_] != byte) return false;
    ++at_;
    return true;
  }

  // Pairs up to `end`; keys are bare names or, in a dict of Python, values.
  bool members(char end, char between, bool quoted_keys) {
    out_ += '{';
    for (bool first = true; !take(end); first = false) {
      if (!first && !take(',')) return false;
      if (!first && take(end)) break;
      if (!first) out_ += ", ";
      if (!(quoted_keys ? text_value() : key()) || !take(between)) return false;
      out_ += ": ";
      if (!value()) return false;
    }
    out_ += '}';
    return true;
  }

  bool key() {
    skip_space();
    if (is_quote()) return text_value();
    const std::size_t begin = at_;
    while (at_ < text_.size() && is_name_byte(text_[at_])) ++at_;
    if (at_ == begin) return false;
    out_ += '"' + json_escaped(text_.substr(begin, at_ - begin)) + '"';
    return true;
  }

  bool is_quote() const {
    if (at_ == text_.size()) return false;
    if (!quote_.empty()) return text_.substr(at_).starts_with(quote_);
    return text_[at_] == '"' || text_[at_] == '\'';
  }

  bool text_value() {
    skip_space();
    if (!is_quote()) return false;
    return quote_.empty() ? python_text() : quoted_text();
  }

  bool quoted_text() {
    at_ += quote_.size();
    const std::size_t end = text_.find(quote_, at_);
    if (end == kNone) return false;
    out_ += '"' + json_escaped(text_.substr(at_, end - at_)) + '"';
    at_ = end + quote_.size();
    return true;
  }

  bool python_text() {
    const char quote = text_[at_++];
    std::string plain;
    while (at_ < text_.size() && text_[at_] != quote) {
      char byte = text_[at_++];
      if (byte == '\\' && at_ < text_.size()) {
        byte = text_[at_++];
        constexpr std::string_view kNames = "nrtbf0";
        constexpr std::string_view kBytes("\n\r\t\b\f\0", 6);
        const std::size_t known = kNames.find(byte);
        if (byte == 'u' || byte == 'x') {
          if (!append_code(byte == 'u' ? 4 : 2, plain)) plain += {'\\', byte};
          continue;
        }
        const bool stands_for_itself = byte == '\\' || byte == '\'' || byte == '"' || byte == '/';
        if (known != kNone) {
          byte = kBytes[known];
        } else if (!stands_for_itself) {
          plain += '\\';
        }
      }
      plain += byte;
    }
    if (at_ == text_.size()) return false;
    ++at_;
    out_ += '"' + json_escaped(plain) + '"';
    return true;
  }

  // Appends the character of hexadecimal digits. JSON decodes it, surrogates of \u included. False:
  // the text has none here, as in a path of Windows.
  bool append_code(std::size_t digits, std::string& plain) {
    std::string escape = "\"\\u" + std::string(4 - digits, '0');
    escape += text_.substr(at_, digits);
    const bool goes_on = at_ + digits < text_.size();
    if (digits == 4 && goes_on && text_.substr(at_ + digits).starts_with("\\u")) {
      const std::string pair = escape + std::string(text_.substr(at_ + digits, 6)) + '"';
      const auto both = nlohmann::json::parse(pair, nullptr, false);
      if (both.is_string()) {
        at_ += digits + 6;
        plain += both.get<std::string>();
        return true;
      }
    }
    const auto one = nlohmann::json::parse(escape + '"', nullptr, false);
    if (!one.is_string()) return false;
    at_ += digits;
    plain += one.get<std::string>();
    return true;
  }

  bool list(char end) {
    out_ += '[';
    for (bool first = true; !take(end); first = false) {
      if (!first && !take(',')) return false;
      if (!first && take(end)) break;
      if (!first) out_ += ", ";
      if (!value()) return false;
    }
    out_ += ']';
    return true;
  }

  bool value() {
    skip_space();
    if (at_ == text_.size()) return false;
    if (is_quote()) return text_value();
    const char byte = text_[at_];
    if (byte == '{' || byte == '[' || byte == '(') {
      if (++depth_ > text::kJsonDepthMax) return false;
      ++at_;
      const bool fits = byte == '{' ? members('}', ':', quote_.empty()) : list(closing(byte));
      --depth_;
      return fits;
    }
    return word();
  }

  // Numbers, True, None and the like.
  bool word() {
    const std::size_t begin = at_;
    while (at_ < text_.size() && (is_name_byte(text_[at_]) || text_[at_] == '+')) ++at_;
    JsonStream stream;
    const std::string_view word = text_.substr(begin, at_ - begin);
    if (stream.read(word, out_) != word.size()) return false;
    out_ += stream.finish();
    return stream.state() == JsonStream::State::kDone;
  }

  std::string_view text_;
  std::string_view quote_;
  std::size_t at_ = 0;
  std::size_t depth_ = 0;
  std::string out_;
};

}  // namespace

std::optional<std::size_t> LiteralScanner::find_end(std::string_view text) {
  while (at_ < text.size() && !malformed_) {
    const std::string_view rest = text.substr(at_);
    if (!quote_.empty()) {
      const LiteralMatch match = match_start(rest, quote_);
      if (match == LiteralMatch::kPartial) return std::nullopt;
      if (match == LiteralMatch::kYes) {
        in_quote_ = in_quote_ == 0 ? '"' : 0;
        at_ += quote_.size();
        continue;
      }
      if (in_quote_ == 0) step_bracket(rest.front());
    } else {
      step_python(rest.front());
    }
    ++at_;
    if (nest_.empty()) return at_;
  }
  return std::nullopt;
}

void LiteralScanner::step_python(char byte) {
  if (in_quote_ == 0) {
    if (byte == '"' || byte == '\'') {
      in_quote_ = byte;
    } else {
      step_bracket(byte);
    }
    return;
  }
  if (escaped_) {
    escaped_ = false;
  } else if (byte == '\\') {
    escaped_ = true;
  } else if (byte == in_quote_) {
    in_quote_ = 0;
  }
}

void LiteralScanner::step_bracket(char byte) {
  if (byte == '(' || byte == '[' || byte == '{') {
    if (nest_.size() == text::kJsonDepthMax) malformed_ = true;
    nest_ += closing(byte);
  } else if (byte == ')' || byte == ']' || byte == '}') {
    if (nest_.empty() || nest_.back() != byte) {
      malformed_ = true;
    } else {
      nest_.pop_back();
    }
  }
}

std::optional<std::string> keywords_to_json(std::string_view text) {
  return LiteralConverter(text, {}).keywords();
}

std::optional<std::string> quoted_to_json(std::string_view text, std::string_view quote) {
  return LiteralConverter(text, quote).quoted();
}

}  // namespace pagoda::chat
