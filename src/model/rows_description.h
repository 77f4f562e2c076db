// Describes how this version reads a model's file: rows of a KV cache depend on that beside the
// file, the kernels and the page layout. Stores keep rows under the description, so that rows of
// another reading, by a version or by options, are never taken for these.
#pragma once

#include <string>

#include "model/config.h"

namespace pagoda::model {

// Equal texts mean equal rows. Empty for what version 0.1 read in the same way, so that its rows
// are still found.
std::string describe_rows(const Config& config);

}  // namespace pagoda::model
