// Strings at which a generation ends, looked for while its text comes in pieces.
//
// The first string to be complete stops the text; of several complete at once, the one that began
// first. How the text is cut into pieces changes nothing. Text that could still turn out to be the
// beginning of a stop string is held back, and so is a character that is not whole. One thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace pagoda::text {

struct StopStringOptions {
  bool include_stop_str_in_output = false;
};

class StopStrings {
 public:
  static constexpr std::size_t kStringsMax = 64;
  static constexpr std::size_t kStringBytesMax = 4096;

  struct Match {
    std::size_t string;  // its index in the list
    std::size_t begin;   // bytes of the whole text
    std::size_t end;
    bool operator==(const Match&) const = default;
  };

  // No strings: everything passes. An empty string, too many or too long ones are errors.
  static Result<StopStrings> make(std::vector<std::string> strings, StopStringOptions options = {});

  // The text that is safe to send now; nothing once a stop matched.
  std::string push(std::string_view piece);
  // The text held back, for a generation that ended otherwise. The next push starts a new text.
  std::string finish();
  // Set by the push that completed a stop string, until finish().
  const std::optional<Match>& match() const { return match_; }

 private:
  // Knuth, Morris, Pratt: after each byte, how much of the string the text ends in.
  struct Pattern {
    std::string text;
    std::vector<std::uint32_t> fallback;  // by bytes matched: the longest shorter match
    std::uint32_t matched = 0;

    void advance(char byte);
    bool complete() const { return matched == text.size(); }
  };

  explicit StopStrings(StopStringOptions options) : options_(options) {}
  // The best of the strings that end at `end`.
  void note_match(std::size_t end);

  StopStringOptions options_;
  std::vector<Pattern> patterns_;
  std::string held_;
  std::size_t sent_bytes_ = 0;
  std::optional<Match> match_;
};

}  // namespace pagoda::text
