#include "app/cache_folder.h"

#include <fmt/format.h>

#include <cstdlib>

namespace pagoda::app {

std::string cache_folder() {
  const char* const cache = std::getenv("XDG_CACHE_HOME");
  const char* const home = std::getenv("HOME");
  const std::string base = cache != nullptr && *cache != '\0'
                               ? std::string(cache)
                               : fmt::format("{}/.cache", home != nullptr ? home : "");
  return base + "/pagoda";
}

}  // namespace pagoda::app
