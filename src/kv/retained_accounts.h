// Says who retains how many blocks, for people who look from outside.
#pragma once

#include <vector>

#include "kv/cache_snapshot.h"

namespace pagoda::kv {

class Cache;

// Returns the accounts with retained blocks and how many each retains; `region` is the account.
// Linear in the number of accounts.
std::vector<RegionStats> retained_by_account(const Cache& cache);

}  // namespace pagoda::kv
