// The oracle knows what pages must hold: all rows of the tokens that the tree says they have.
#pragma once

#include <string>

#include "kv/cache.h"
#include "sim/toy_runner.h"

namespace pagoda::sim {

// Names the first page of any node whose rows are not those of its tokens and of all before them;
// empty when there is none. Linear.
std::string wrong_page(const kv::Cache& cache, ToyRunner& runner);

}  // namespace pagoda::sim
