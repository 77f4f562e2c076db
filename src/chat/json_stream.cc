#include "chat/json_stream.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <utility>

#include "chat/literal.h"
#include "text/strict_json.h"

namespace pagoda::chat {
namespace {

constexpr std::size_t kWordBytesMax = 512;

bool is_word_byte(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-' ||
         c == '+' || c == '.';
}

bool is_hex(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

std::string_view json_word(std::string_view word) {
  if (word == "True") return "true";
  if (word == "False") return "false";
  return word == "None" ? "null" : word;
}

void append_escaped(char byte, std::string& out) {
  switch (byte) {
    case '\n':
      out += "\\n";
      return;
    case '\t':
      out += "\\t";
      return;
    case '\r':
      out += "\\r";
      return;
    case '"':
      out += "\\\"";
      return;
    case '\\':
      out += "\\\\";
      return;
    default:
      break;
  }
  if (static_cast<unsigned char>(byte) < 0x20) {
    out += fmt::format("\\u{:04x}", static_cast<unsigned>(byte));
  } else {
    out += byte;
  }
}

}  // namespace

std::string json_escaped(std::string_view text) {
  std::string out;
  for (const char byte : text) append_escaped(byte, out);
  return out;
}

std::size_t JsonStream::read(std::string_view text, std::string& out) {
  std::size_t at = 0;
  while (at < text.size() && state_ == State::kOpen) {
    if (!step(text[at], out)) break;
    ++at;
  }
  return at;
}

std::string JsonStream::finish() {
  std::string out = std::exchange(held_, {});
  if (state_ == State::kOpen && !word_.empty()) end_word(out);
  return out;
}

// Returns whether the byte was taken; a byte that ends a word is not part of it.
bool JsonStream::step(char byte, std::string& out) {
  if (in_string_) return step_string(byte, out);
  if (!word_.empty()) {
    if (is_word_byte(byte)) {
      if (word_.size() == kWordBytesMax) return fail();
      word_ += byte;
      return true;
    }
    if (!end_word(out) || state_ != State::kOpen) return false;
  }
  return step_structure(byte, out);
}

bool JsonStream::step_string(char byte, std::string& out) {
  if (hex_ > 0) {
    if (is_hex(byte)) {
      held_ += byte;
      if (--hex_ == 0) out += std::exchange(held_, {});
      return true;
    }
    // "\u12x" is no escape: its backslash stands for itself.
    hex_ = 0;
    out += '\\' + std::exchange(held_, {});
  }
  if (std::exchange(escaped_, false)) {
    if (byte == 'u') {
      held_ = "\\u";
      hex_ = 4;
      return true;
    }
    if (std::string_view("\"\\/bfnrt").find(byte) != std::string_view::npos) {
      out += '\\';
      out += byte;
      return true;
    }
    out += "\\\\";
  } else if (byte == '\\') {
    escaped_ = true;
    return true;
  }
  if (byte == '"') {
    out += byte;
    in_string_ = false;
    if (is_key_) {
      expect_ = Expect::kColon;
    } else {
      end_value();
    }
    return true;
  }
  append_escaped(byte, out);
  return true;
}

bool JsonStream::step_structure(char byte, std::string& out) {
  if (is_space(byte)) {
    if (begun_) out += byte;
    return true;
  }
  const bool takes_value = expect_ == Expect::kValue || expect_ == Expect::kValueOrEnd;
  const bool takes_key = expect_ == Expect::kKey || expect_ == Expect::kKeyOrEnd;
  begun_ = true;
  if (byte == '"' && (takes_value || takes_key)) {
    in_string_ = true;
    is_key_ = takes_key;
    out += byte;
    return true;
  }
  if ((byte == '{' || byte == '[') && takes_value) {
    out += byte;
    return open(byte);
  }
  if (byte == '}' || byte == ']') {
    if (!close(byte)) return fail();
    out += byte;
    end_value();
    return true;
  }
  if (byte == ':' && expect_ == Expect::kColon) {
    expect_ = Expect::kValue;
    out += byte;
    return true;
  }
  if (byte == ',' && expect_ == Expect::kCommaOrEnd) {
    expect_ = nest_.back() == '{' ? Expect::kKey : Expect::kValue;
    out += byte;
    return true;
  }
  if (takes_value && is_word_byte(byte)) {
    word_ += byte;
    return true;
  }
  return fail();
}

bool JsonStream::open(char bracket) {
  if (nest_.size() == text::kJsonDepthMax) return fail();
  nest_ += bracket;
  expect_ = bracket == '{' ? Expect::kKeyOrEnd : Expect::kValueOrEnd;
  return true;
}

bool JsonStream::close(char bracket) {
  const char opened = bracket == '}' ? '{' : '[';
  const Expect empty = bracket == '}' ? Expect::kKeyOrEnd : Expect::kValueOrEnd;
  if (nest_.empty() || nest_.back() != opened) return false;
  if (expect_ != Expect::kCommaOrEnd && expect_ != empty) return false;
  nest_.pop_back();
  return true;
}

bool JsonStream::end_word(std::string& out) {
  const std::string word = std::exchange(word_, {});
  const bool valid = nlohmann::json::accept(json_word(word));
  // A word that is none is passed on too: the text is malformed, and nothing of it is lost.
  out += valid ? json_word(word) : word;
  if (!valid) return fail();
  end_value();
  return true;
}

void JsonStream::end_value() {
  expect_ = Expect::kCommaOrEnd;
  if (nest_.empty()) state_ = State::kDone;
}

bool JsonStream::fail() {
  state_ = State::kMalformed;
  return false;
}

}  // namespace pagoda::chat
