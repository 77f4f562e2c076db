// Knows the accounts (ids.h) that have more blocks than their quota, and which of their blocks is
// evicted first (README: E7).
//
// While an account is over, its evictable blocks are what is evicted, those used longest ago first,
// whatever the policy; of several the one that has been over for longest. At most one account for
// each quota that the pool holds can be over at once, so that looking through them is bounded.
//
// A heap per account, linked through records of blocks (linked_heaps.h) that whoever keeps other
// heaps of the same blocks shares.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "kv/evict/eviction_queue.h"
#include "kv/evict/linked_heaps.h"
#include "kv/ids.h"

namespace pagoda::kv {

class QuotaQueues {
 public:
  struct Options {
    std::uint64_t blocks_private = 0;  // of each account; 0: no quota
    std::uint64_t blocks_public = 0;
  };

  // The heaps must outlive the queues.
  QuotaQueues(const Options& options, LinkedHeaps& heaps) : options_(options), heaps_(heaps) {}

  // Takes memory for accounts of so many numbers: later calls take none.
  void fit(std::size_t accounts);
  // The account has so many blocks now.
  void note_charge(AccountId account, std::uint64_t blocks);
  bool is_over(AccountId account) const {
    return account.value() < accounts_.size() && accounts_[account.value()].is_over;
  }

  bool has_quota(AccountId account) const { return quota(account) > 0; }

  // The block may be evicted now; a block that is there stays where it is.
  void push(AccountId account, BlockId block, Tick last_use);
  void erase(AccountId account, BlockId block);

  // Takes out the block to be evicted next because its account is over.
  // last_use(BlockId) and judge(BlockId) as in EvictionQueue.
  template <class LastUse, class Judge>
  std::optional<BlockId> pop(LastUse&& last_use, Judge&& judge) {
    for (const AccountId account : over_) {
      LinkedHeaps::Item& top = accounts_[account.value()].top;
      while (top != LinkedHeaps::kNone) {
        const BlockId block(top);
        const bool takes = judge(block) == EvictionQueue::Verdict::kTake;
        const auto key = -static_cast<std::int64_t>(last_use(block));
        const bool exact = heaps_.key(top) == key;
        heaps_.erase(top, block.value());
        if (takes && exact) return block;
        if (takes) heaps_.push(top, block.value(), key);
      }
    }
    return std::nullopt;
  }

  // `blocks(account)` is the number that the account is charged with. Linear.
  template <class Blocks>
  void check(Blocks&& blocks) const {
    for (std::uint32_t i = 0; i < accounts_.size(); ++i) {
      heaps_.check(accounts_[i].top);
      check_over(AccountId(i), blocks(AccountId(i)));
    }
  }

 private:
  struct Account {
    LinkedHeaps::Item top = LinkedHeaps::kNone;
    bool is_over = false;
  };

  std::uint64_t quota(AccountId account) const {
    return account == kPublicAccount ? options_.blocks_public : options_.blocks_private;
  }
  Account& at(AccountId account) { return accounts_[account.value()]; }
  void check_over(AccountId account, std::uint64_t blocks) const;

  Options options_;
  LinkedHeaps& heaps_;
  std::vector<Account> accounts_;  // [account]
  std::vector<AccountId> over_;    // since longest first
};

}  // namespace pagoda::kv
