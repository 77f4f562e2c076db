// Reads one JSON value while its text comes in pieces, and passes it on as valid JSON.
//
// Models write JSON nearly well: control characters within strings and unknown escapes are escaped,
// and True, False and None become JSON. Everything else that is wrong is malformed. The result does
// not depend on how the text is cut into pieces.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace pagoda::chat {

class JsonStream {
 public:
  enum class State : std::uint8_t { kOpen, kDone, kMalformed };

  // Appends what is certain to `out` and returns the bytes read, which end with the value or before
  // the first byte that cannot belong to it. White space before the value is skipped.
  std::size_t read(std::string_view text, std::string& out);
  // Ends a number or a word at the top, which has no end of its own, and returns the rest.
  std::string finish();
  State state() const { return state_; }
  // True between the first byte of the value and its end.
  bool begun() const { return begun_; }

 private:
  enum class Expect : std::uint8_t {
    kValue,
    kValueOrEnd,  // behind '['
    kKey,
    kKeyOrEnd,  // behind '{'
    kColon,
    kCommaOrEnd,
  };

  bool step(char byte, std::string& out);
  bool step_string(char byte, std::string& out);
  bool step_structure(char byte, std::string& out);
  bool open(char bracket);
  bool close(char bracket);
  bool end_word(std::string& out);
  void end_value();
  bool fail();

  State state_ = State::kOpen;
  Expect expect_ = Expect::kValue;
  bool begun_ = false;
  bool in_string_ = false;
  bool escaped_ = false;  // the byte behind a backslash comes next
  bool is_key_ = false;   // the string is a key
  std::uint8_t hex_ = 0;  // hexadecimal digits of \u that are still to come
  std::string nest_;      // the open brackets
  std::string word_;      // a number or a word that may go on
  std::string held_;      // an escape of \u that may go on
};

// Returns the text as a JSON string without its quotes.
std::string json_escaped(std::string_view text);

}  // namespace pagoda::chat
