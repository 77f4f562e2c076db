// What kind of text it is that differs between a prompt and what the cache has: dates, times,
// counters and ids near a prompt's beginning are what most often keeps it from being found.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace pagoda::server {

struct ChangingText {
  std::string_view asked;   // the word in which the texts part, as asked
  std::string_view stored;  // and as the cache has it
  std::string_view kind;    // "a date", "a time", "a number", "an id", or empty
};

// Two texts that part at byte `at`. Views into them.
ChangingText changing_text(std::string_view asked, std::string_view stored, std::size_t at);

}  // namespace pagoda::server
