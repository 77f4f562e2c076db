// Finds dates and times as people and programs write them.
#pragma once

#include <cstddef>
#include <string_view>

namespace pagoda::server {

// Returns where the date or time ends that a text begins with: "2026-11-17", " Tuesday, November
// 17th, 2026 at 5:03 PM UTC", "17.11.2026 17:03", seconds since 1970. 0: there is none. A weekday,
// or a number alone, is none; punctuation behind it is not part of it. Looks at a few words only.
std::size_t date_end(std::string_view text);

}  // namespace pagoda::server
