// Asks a server before the load which model it serves, and whether it takes token ids.
#pragma once

#include <string>

#include "base/result.h"
#include "loadgen/target.h"

namespace pagoda::loadgen {

// The first of /v1/models.
Result<std::string> first_model(const Target& target);

// True when a completion of three token ids is answered, and the prompt counted as three tokens.
bool takes_ids(const Target& target, const std::string& model, const IdRange& ids);

}  // namespace pagoda::loadgen
