// How draft tokens are found, as every command that generates takes it.
#pragma once

#include "cli/flags.h"
#include "speculate/options.h"

namespace pagoda::cli {

// --speculative-config, and llama.cpp's --spec-type and --spec-draft-n-max. What is not given stays
// as it was.
void add_speculation_options(const CommandSpec& command, speculate::SpeculationOptions& options);

}  // namespace pagoda::cli
