// The command by which the KV configuration of a server is measured: pagoda eval.
#pragma once

#include <string>
#include <vector>

#include "serve/serve_options.h"

namespace pagoda::serve {

// Returns the words of the command that measures a KV configuration (app::kv_choice_name) of a
// server with these options, "pagoda" first.
std::vector<std::string> eval_words(const ServeOptions& options, const std::string& configuration);
// The same for the part at depth alone.
std::vector<std::string> quick_eval_words(const ServeOptions& options,
                                          const std::string& configuration);

struct IdleEval {
  bool on_gpu = false;      // a GPU computes what is served: no other arithmetic is measured
  double time_limit_s = 0;  // of the part at depth
};
// The same in the idle time of the server.
std::vector<std::string> idle_eval_words(const ServeOptions& options,
                                         const std::string& configuration, const IdleEval& idle);

}  // namespace pagoda::serve
