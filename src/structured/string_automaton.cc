#include "structured/string_automaton.h"

#include <string_view>

namespace pagoda::structured {
namespace {

class AutomatonBuilder {
 public:
  AutomatonBuilder() {
    for (auto& row : automaton_.next) row.fill(kDead);
  }

  void range(std::uint8_t from, unsigned first, unsigned last, std::uint8_t to) {
    for (unsigned byte = first; byte <= last; ++byte) automaton_.next[from][byte] = to;
  }
  void bytes(std::uint8_t from, std::string_view all, std::uint8_t to) {
    for (const char byte : all) automaton_.next[from][static_cast<unsigned char>(byte)] = to;
  }
  const StringAutomaton& automaton() const { return automaton_; }

 private:
  StringAutomaton automaton_{};
};

constexpr std::string_view kHexDigits = "0123456789abcdefABCDEF";

void add_escapes(AutomatonBuilder& builder) {
  builder.bytes(kEscape, "\"\\/bfnrt", kBody);
  builder.bytes(kEscape, "u", kHex1);
  builder.bytes(kHex1, kHexDigits, kHex2);
  builder.bytes(kHex1, "dD", kHex2AfterD);
  builder.bytes(kHex2, kHexDigits, kHex3);
  builder.bytes(kHex2AfterD, "01234567", kHex3);
  builder.bytes(kHex2AfterD, "89abAB", kHigh3);
  builder.bytes(kHex3, kHexDigits, kHex4);
  builder.bytes(kHex4, kHexDigits, kBody);
  builder.bytes(kHigh3, kHexDigits, kHigh4);
  builder.bytes(kHigh4, kHexDigits, kLowBackslash);
  builder.bytes(kLowBackslash, "\\", kLowU);
  builder.bytes(kLowU, "u", kLow1);
  builder.bytes(kLow1, "dD", kLow2);
  builder.bytes(kLow2, "cdefCDEF", kHex3);
}

void add_utf8(AutomatonBuilder& builder) {
  builder.range(kBody, 0xC2, 0xDF, kTail1);
  builder.range(kBody, 0xE0, 0xE0, kTailE0);
  builder.range(kBody, 0xE1, 0xEF, kTail2);
  builder.range(kBody, 0xED, 0xED, kTailED);
  builder.range(kBody, 0xF0, 0xF0, kTailF0);
  builder.range(kBody, 0xF1, 0xF3, kTail3);
  builder.range(kBody, 0xF4, 0xF4, kTailF4);
  builder.range(kTail1, 0x80, 0xBF, kBody);
  builder.range(kTail2, 0x80, 0xBF, kTail1);
  builder.range(kTail3, 0x80, 0xBF, kTail2);
  builder.range(kTailE0, 0xA0, 0xBF, kTail1);
  builder.range(kTailED, 0x80, 0x9F, kTail1);
  builder.range(kTailF0, 0x90, 0xBF, kTail2);
  builder.range(kTailF4, 0x80, 0x8F, kTail2);
}

StringAutomaton build() {
  AutomatonBuilder builder;
  builder.range(kBody, 0x20, 0x7F, kBody);
  builder.bytes(kBody, "\"", kClosed);
  builder.bytes(kBody, "\\", kEscape);
  add_escapes(builder);
  add_utf8(builder);
  return builder.automaton();
}

}  // namespace

const StringAutomaton& string_automaton() {
  static const StringAutomaton kAutomaton = build();
  return kAutomaton;
}

}  // namespace pagoda::structured
