// Arguments that are neither JSON nor tagged, as JSON:
//   (city="Rome", days=2, exact=True)         keywords of a Python call
//   {city:<|"|>Rome<|"|>,days:2}              bare keys, and quotes of the model's own
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace pagoda::chat {

// Finds the end of such arguments while their text comes in pieces.
class LiteralScanner {
 public:
  // `quote` is empty for a Python call. The text must begin with its bracket.
  explicit LiteralScanner(std::string_view quote) : quote_(quote) {}

  // `text` is everything from the bracket on, longer at each call. Returns the bytes up to the end
  // of the arguments once it is there.
  std::optional<std::size_t> find_end(std::string_view text);
  bool malformed() const { return malformed_; }

 private:
  void step_python(char byte);
  void step_bracket(char byte);

  std::string quote_;
  std::size_t at_ = 0;
  std::string nest_;
  char in_quote_ = 0;
  bool escaped_ = false;
  bool malformed_ = false;
};

// Both return nothing for malformed text.
std::optional<std::string> keywords_to_json(std::string_view text);
std::optional<std::string> quoted_to_json(std::string_view text, std::string_view quote);

}  // namespace pagoda::chat
