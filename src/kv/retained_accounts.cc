#include "kv/retained_accounts.h"

#include "kv/cache.h"

namespace pagoda::kv {

std::vector<RegionStats> retained_by_account(const Cache& cache) {
  std::vector<RegionStats> accounts;
  for (std::uint32_t i = 0; i < cache.salts().account_numbers(); ++i) {
    const AccountId account(i);
    const std::uint64_t blocks = cache.retention().blocks(account);
    if (blocks > 0) accounts.push_back({i, cache.salts().owner(account), blocks});
  }
  return accounts;
}

}  // namespace pagoda::kv
