// Keeps the salts that someone still refers to, and the accounts that count their regions' blocks.
//
// A salt is known while a scope, a sequence or a node refers to it; after the last of them it is
// forgotten and its number used again, so that the table is as large as the cache is, however many
// salts clients invent. The public region is always there and is not counted. The salts of one
// owner are a ring and share one account, which is there while one of them is; a salt that had no
// owner when it became known has an account of its own. A salt that was retired has a region nobody
// new comes to: its text, acquired again, is another region.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kv/ids.h"

namespace pagoda::kv {

class SaltTable {
 public:
  explicit SaltTable(std::uint64_t hash_seed = 0) : hash_seed_(hash_seed) {}

  // Returns the region of a salt and takes a reference to it. The empty text is the public region,
  // which nobody owns. A salt belongs to the first owner that acquires it.
  SaltId acquire(std::string_view text, OwnerId owner = kNoOwner);
  void hold(SaltId salt);
  void release(SaltId salt);
  // Retires all salts of the owner that are known now (README: I6). Whoever refers to one keeps it.
  void retire(OwnerId owner);
  bool is_retired(SaltId salt) const { return entries_[salt.value()].is_retired; }
  // Counts the blocks that nodes of the owner's retired regions have.
  std::uint64_t blocks_retired(OwnerId owner) const;

  OwnerId owner(SaltId salt) const { return entries_[salt.value()].owner; }
  std::string_view text(SaltId salt) const { return entries_[salt.value()].text; }
  // A hash of the salt's text under a key that clients do not know: equal for equal texts, whatever
  // the salt's number. The public region has 0.
  std::uint64_t key(SaltId salt) const { return entries_[salt.value()].key; }
  // Stands for whom room is made in eviction records: the owner, or the salt where nobody owns it.
  // A hash, equal for equal texts as key() is.
  std::uint32_t tenant_key(SaltId salt, OwnerId owner) const;
  // Calls visit(SaltId) for salts of the owner, newest first, while it returns true.
  template <class Visit>
  void for_each_of(OwnerId owner, Visit&& visit) const {
    const auto newest = newest_of_.find(owner);
    if (newest == newest_of_.end()) return;
    SaltId salt = newest->second;
    while (visit(salt)) {
      salt = entries_[salt.value()].older;
      if (salt == newest->second) return;
    }
  }
  // A node of the region has a block more, or one less.
  void charge(SaltId salt);
  void discharge(SaltId salt);
  std::uint64_t blocks_charged(SaltId salt) const { return entries_[salt.value()].blocks_charged; }

  OwnerId owner(AccountId account) const { return accounts_[account.value()].owner; }
  AccountId account(SaltId salt) const { return entries_[salt.value()].account; }
  std::uint64_t blocks_charged(AccountId account) const {
    return accounts_[account.value()].blocks_charged;
  }

  // Blocks of the owner's account; 0 when the owner has no account by now.
  std::uint64_t blocks_charged(OwnerId owner) const {
    const auto known = account_of_.find(owner);
    return known == account_of_.end() ? 0 : blocks_charged(known->second);
  }

  std::size_t salts() const { return ids_.size() + retired_.size(); }
  // Salts have numbers below this one, the public region's included.
  std::size_t numbers() const { return entries_.size(); }
  std::size_t account_numbers() const { return accounts_.size(); }

  // Stops the program when a region is not charged for the blocks of its nodes, `charged[salt]`, or
  // an account for those of its regions (README: C4).
  void check(std::span<const std::uint64_t> charged) const;

 private:
  struct Entry {
    std::string_view text = {};  // the key in ids_, or of retired_
    std::uint64_t references = 0;
    std::uint64_t blocks_charged = 0;
    std::uint64_t key = 0;
    OwnerId owner = kNoOwner;
    AccountId account = kPublicAccount;
    SaltId older = kPublic;  // in the ring of its owner
    SaltId newer = kPublic;
    bool is_retired = false;  // and in no ring
  };

  struct Account {
    std::uint64_t salts = 0;
    std::uint64_t blocks_charged = 0;
    OwnerId owner = kNoOwner;  // who else's salts are counted here
  };

  AccountId open_account(OwnerId owner);
  void close_account(AccountId account);
  void give_to(OwnerId owner, SaltId salt);
  void take_from_owner(SaltId salt);

  std::uint64_t hash_seed_;
  std::map<OwnerId, SaltId> newest_of_;
  std::map<std::string, SaltId, std::less<>> ids_;
  std::map<SaltId, std::string> retired_;   // texts
  std::vector<Entry> entries_ = {Entry{}};  // [salt]
  std::vector<SaltId> unused_;
  std::map<OwnerId, AccountId> account_of_;
  std::vector<Account> accounts_ = {Account{}};  // [account]
  std::vector<AccountId> accounts_unused_;
};

}  // namespace pagoda::kv
