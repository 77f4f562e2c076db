// The oracle knows what pages must hold: all rows of the tokens that the tree says they have.
#pragma once

#include <set>
#include <string>

#include "kv/cache.h"
#include "sim/toy_runner.h"

namespace pagoda::sim {

// Names the first page of any node whose rows are not those of its tokens and of all before them;
// empty when there is none. Linear.
std::string wrong_page(const kv::Cache& cache, ToyRunner& runner);

// Digests of prefixes, under the KV policies of their requests.
using PrefixSet = std::set<Digest>;

// Names the first node whose rows are those of tokens that no sequence has before its last token;
// empty when there is none. Rows that speculation rejected would be such. Linear.
std::string unasked_node(const kv::Cache& cache, const PrefixSet& known);

}  // namespace pagoda::sim
