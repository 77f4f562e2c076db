#include "kv/evict/quota_queues.h"

#include <algorithm>

#include "base/assert.h"

namespace pagoda::kv {

void QuotaQueues::fit(std::size_t accounts) {
  if (accounts <= accounts_.size()) return;
  accounts_.resize(accounts);
  over_.reserve(accounts_.capacity());
}

void QuotaQueues::note_charge(AccountId account, std::uint64_t blocks) {
  const bool is_over = quota(account) > 0 && blocks > quota(account);
  Account& record = at(account);
  if (record.is_over == is_over) return;
  record.is_over = is_over;
  if (is_over) {
    over_.push_back(account);
  } else {
    over_.erase(std::find(over_.begin(), over_.end(), account));
  }
}

void QuotaQueues::push(AccountId account, BlockId block, Tick last_use) {
  if (quota(account) == 0 || heaps_.contains(block.value())) return;
  heaps_.push(at(account).top, block.value(), -static_cast<std::int64_t>(last_use));
}

void QuotaQueues::erase(AccountId account, BlockId block) {
  if (quota(account) == 0 || !heaps_.contains(block.value())) return;
  heaps_.erase(at(account).top, block.value());
}

void QuotaQueues::check_over(AccountId account, std::uint64_t blocks) const {
  const bool is_over = quota(account) > 0 && blocks > quota(account);
  const auto listed = std::count(over_.begin(), over_.end(), account);
  ASSERT(accounts_[account.value()].is_over == is_over && listed == (is_over ? 1 : 0),
         "Q1: which accounts are over their quota is known");
}

}  // namespace pagoda::kv
