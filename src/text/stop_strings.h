// Searches for the strings that end a generation, while its text comes in pieces.
//
// The first string to be complete stops the text; of several that are complete at once, the one
// that began first. The result does not depend on how the text is cut into pieces. Text that could
// still turn out to be the beginning of a stop string is held back, and so is an incomplete
// character. One thread may use an object at a time.
//
// Copies share the strings and their tables: each of many sequences has a copy of one set.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "base/shared_list.h"

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
    std::size_t begin;   // offset in the whole text, in bytes
    std::size_t end;
    bool operator==(const Match&) const = default;
  };

  StopStrings() = default;  // without strings everything passes
  // Refuses an empty string, and too many or too long ones.
  static Result<StopStrings> make(std::vector<std::string> strings, StopStringOptions options = {});

  // Returns the text that is safe to send now; empty once a stop string matched.
  std::string push(std::string_view piece);
  // Searches a piece as push() does, for who wants no text: true once a stop string matched. One
  // object is given pieces by one of the two alone. Allocates nothing.
  bool search(std::string_view piece);
  // Returns the text held back, for a generation that ended otherwise. The next push starts a new
  // text.
  std::string finish();
  // The push that completes a stop string sets this, until finish().
  const std::optional<Match>& match() const { return match_; }
  bool empty() const { return patterns_.empty(); }
  const std::string& string(std::size_t index) const { return patterns_[index].text; }

 private:
  // Knuth-Morris-Pratt: tracks, after each byte, how much of the string the text ends in.
  struct Pattern {
    std::string text;
    std::vector<std::uint32_t> fallback;  // by bytes matched: the next shorter match

    // Returns how much is matched after one more byte.
    std::uint32_t advance(std::uint32_t matched, char byte) const;
  };

  static Pattern compile(std::string text);
  StopStrings(std::vector<Pattern> patterns, StopStringOptions options)
      : patterns_(std::move(patterns)), options_(options), matched_(patterns_.size()) {}
  // Follows the text by one byte, which ends at `end`; chooses among the strings that end there.
  void follow(char byte, std::size_t end);

  SharedList<Pattern> patterns_;
  StopStringOptions options_;
  std::vector<std::uint32_t> matched_;  // for each pattern
  std::string held_;
  std::size_t sent_bytes_ = 0;  // of the text, before what is held
  std::optional<Match> match_;
};

}  // namespace pagoda::text
