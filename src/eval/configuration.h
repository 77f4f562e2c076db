// A configuration is a named way to run a model that trades quality for memory, such as a KV
// format.
#pragma once

#include <functional>
#include <string>

#include "engine/backends/backend_options.h"

namespace pagoda::eval {

struct EvalConfiguration {
  std::string name;                                            // "int8"
  std::function<void(engine::BackendOptions& options)> apply;  // sets what makes it so
};

}  // namespace pagoda::eval
