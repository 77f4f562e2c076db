#include "kv/salt_table.h"

#include "base/assert.h"
#include "kv/block_identity.h"

namespace pagoda::kv {

SaltId SaltTable::acquire(std::string_view text, OwnerId owner) {
  if (text.empty()) return kPublic;
  auto known = ids_.find(text);
  if (known == ids_.end()) {
    if (unused_.empty()) {
      unused_.emplace_back(static_cast<std::uint32_t>(entries_.size()));
      entries_.emplace_back();
      unused_.reserve(entries_.capacity());  // so that release() allocates nothing
    }
    known = ids_.emplace(text, unused_.back()).first;
    unused_.pop_back();
    Entry& entry = entries_[known->second.value()];
    entry.text = known->first;
    entry.key = mix_identity(hash_seed_, text.size());
    entry.account = open_account(owner);
    for (const char c : text) entry.key = mix_identity(entry.key, static_cast<unsigned char>(c));
  }
  give_to(owner, known->second);
  hold(known->second);
  return known->second;
}

void SaltTable::hold(SaltId salt) {
  if (salt != kPublic) ++entries_[salt.value()].references;
}

void SaltTable::release(SaltId salt) {
  if (salt == kPublic) return;
  Entry& entry = entries_[salt.value()];
  ASSERT(entry.references > 0, "who releases a salt holds it");
  if (--entry.references > 0) return;
  ASSERT(entry.blocks_charged == 0, "a region without nodes has no blocks");
  close_account(entry.account);
  if (entry.is_retired) {
    retired_.erase(salt);
  } else {
    take_from_owner(salt);
    ids_.erase(ids_.find(entry.text));
  }
  entry = Entry{};
  unused_.push_back(salt);
}

void SaltTable::retire(OwnerId owner) {
  for (auto each = ids_.begin(); each != ids_.end();) {
    const SaltId salt = each->second;
    Entry& entry = entries_[salt.value()];
    if (entry.owner != owner) {
      ++each;
      continue;
    }
    take_from_owner(salt);
    const auto kept = retired_.emplace(salt, each->first).first;
    entry.text = kept->second;
    entry.is_retired = true;
    each = ids_.erase(each);
  }
}

std::uint64_t SaltTable::blocks_retired(OwnerId owner) const {
  std::uint64_t blocks = 0;
  for (const auto& [salt, text] : retired_) {
    if (this->owner(salt) == owner) blocks += blocks_charged(salt);
  }
  return blocks;
}

std::uint32_t SaltTable::tenant_key(SaltId salt, OwnerId owner) const {
  if (owner == kNoOwner) return static_cast<std::uint32_t>(key(salt));
  return static_cast<std::uint32_t>(mix_identity(hash_seed_, owner.value()));
}

void SaltTable::charge(SaltId salt) {
  Entry& entry = entries_[salt.value()];
  ++entry.blocks_charged;
  ++accounts_[entry.account.value()].blocks_charged;
}

void SaltTable::discharge(SaltId salt) {
  Entry& entry = entries_[salt.value()];
  --entry.blocks_charged;
  --accounts_[entry.account.value()].blocks_charged;
}

// Opens an account, or counts one salt more in the one that the owner has.
AccountId SaltTable::open_account(OwnerId owner) {
  const auto known = owner == kNoOwner ? account_of_.end() : account_of_.find(owner);
  if (known != account_of_.end()) {
    ++accounts_[known->second.value()].salts;
    return known->second;
  }
  if (accounts_unused_.empty()) {
    accounts_unused_.emplace_back(static_cast<std::uint32_t>(accounts_.size()));
    accounts_.emplace_back();
    accounts_unused_.reserve(accounts_.capacity());  // so that release() allocates nothing
  }
  const AccountId account = accounts_unused_.back();
  accounts_unused_.pop_back();
  accounts_[account.value()] = {.salts = 1, .blocks_charged = 0, .owner = owner};
  if (owner != kNoOwner) account_of_.emplace(owner, account);
  return account;
}

void SaltTable::close_account(AccountId account) {
  Account& record = accounts_[account.value()];
  if (--record.salts > 0) return;
  ASSERT(record.blocks_charged == 0, "an account without salts has no blocks");
  if (record.owner != kNoOwner) account_of_.erase(record.owner);
  record = Account{};
  accounts_unused_.push_back(account);
}

void SaltTable::check(std::span<const std::uint64_t> charged) const {
  std::vector<std::uint64_t> accounts(accounts_.size(), 0);
  for (std::uint32_t salt = 0; salt < entries_.size(); ++salt) {
    accounts[entries_[salt].account.value()] += charged[salt];
    ASSERT(charged[salt] == entries_[salt].blocks_charged,
           "C4: every region is charged for the blocks of its nodes");
  }
  for (std::uint32_t account = 0; account < accounts.size(); ++account) {
    ASSERT(accounts[account] == accounts_[account].blocks_charged,
           "C4: every account is charged for the blocks of its regions");
  }
}

void SaltTable::give_to(OwnerId owner, SaltId salt) {
  Entry& entry = entries_[salt.value()];
  if (owner == kNoOwner || entry.owner != kNoOwner) return;
  entry.owner = owner;
  const auto [newest, is_first] = newest_of_.try_emplace(owner, salt);
  entry.older = newest->second;
  entry.newer = is_first ? salt : entries_[newest->second.value()].newer;  // the oldest
  entries_[entry.older.value()].newer = salt;
  entries_[entry.newer.value()].older = salt;
  newest->second = salt;
}

void SaltTable::take_from_owner(SaltId salt) {
  const Entry& entry = entries_[salt.value()];
  if (entry.owner == kNoOwner) return;
  const auto newest = newest_of_.find(entry.owner);
  if (entry.older == salt) {
    newest_of_.erase(newest);
    return;
  }
  if (newest->second == salt) newest->second = entry.older;
  entries_[entry.older.value()].newer = entry.newer;
  entries_[entry.newer.value()].older = entry.older;
}

}  // namespace pagoda::kv
