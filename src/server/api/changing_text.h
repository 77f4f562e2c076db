// Classifies the text that differs between a prompt and the cache: dates, times, counters and ids
// near a prompt's start are the most common reasons for a miss.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace pagoda::server {

struct ChangingText {
  std::string_view asked;   // the differing word of the prompt
  std::string_view stored;  // the differing word of the cached text
  std::string_view kind;    // "a date", "a time", "a number", "an id", or empty
};

// Compares two texts that differ from byte `at` on; the result holds views into them.
ChangingText changing_text(std::string_view asked, std::string_view stored, std::size_t at);

}  // namespace pagoda::server
