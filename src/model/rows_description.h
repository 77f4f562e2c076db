// What the rows of a KV cache depend on beside a model's file, the kernels and the page layout: how
// this version reads the file. Stores keep rows under it, so that rows of another reading, by a
// version or by options, are never taken for these.
#pragma once

#include <string>

#include "model/config.h"

namespace pagoda::model {

// Equal texts mean equal rows. Empty for what version 0.1 read in the same way, so that its rows
// are still found.
std::string describe_rows(const Config& config);

}  // namespace pagoda::model
