// The salts that someone still needs, and the accounts of their regions.
//
// A salt is known while a domain, a sequence or a node refers to it; after the last of them it is
// forgotten and its number used again, so that the table is as large as the cache is, however many
// salts clients invent. The public region is always there and is not counted.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "kv/ids.h"

namespace pagoda::kv {

class SaltTable {
 public:
  // The region of a salt, with one reference more. Empty: the public region. A region belongs to
  // the owner who made it known.
  SaltId acquire(std::string_view text, OwnerId owner = {});
  void hold(SaltId salt);
  void release(SaltId salt);

  OwnerId owner(SaltId salt) const { return entries_[salt.value()].owner; }
  std::string_view text(SaltId salt) const { return entries_[salt.value()].text; }
  std::uint64_t& blocks_charged(SaltId salt) { return entries_[salt.value()].blocks_charged; }
  std::uint64_t blocks_charged(SaltId salt) const { return entries_[salt.value()].blocks_charged; }

  std::size_t salts() const { return ids_.size(); }
  // Numbers ever in use at once, the public region's included.
  std::size_t numbers() const { return entries_.size(); }

 private:
  struct Entry {
    std::string_view text = {};  // the key in ids_
    OwnerId owner = {};
    std::uint64_t references = 0;
    std::uint64_t blocks_charged = 0;
  };

  std::map<std::string, SaltId, std::less<>> ids_;
  std::vector<Entry> entries_ = {Entry{}};  // [salt]
  std::vector<SaltId> unused_;
};

}  // namespace pagoda::kv
