// Names the path that stands here for one of another server, or for a misspelt one.
#pragma once

#include <string>
#include <string_view>

namespace pagoda::server {

// Returns the end of a sentence about a path that is not there, such as "; it is /v1/completions
// here"; empty where nothing of ours is meant.
std::string path_hint(std::string_view path);

}  // namespace pagoda::server
