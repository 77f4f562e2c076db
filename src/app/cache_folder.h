// Where Pagoda keeps what outlives a process: models, KV, secrets, measured speeds.
#pragma once

#include <string>

namespace pagoda::app {

// ${XDG_CACHE_HOME:-$HOME/.cache}/pagoda
std::string cache_folder();

}  // namespace pagoda::app
