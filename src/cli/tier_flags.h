// The flags of pagoda serve about memory, disk and remote stores.
#pragma once

#include "app/tier_set.h"
#include "cli/flags.h"

namespace pagoda::cli {

void add_tier_options(const CommandSpec& command, app::TierSetOptions& flags);

}  // namespace pagoda::cli
