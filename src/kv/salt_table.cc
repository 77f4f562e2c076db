#include "kv/salt_table.h"

#include "base/assert.h"

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
    entry.owner = owner;
  }
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
  ids_.erase(ids_.find(entry.text));
  entry = Entry{};
  unused_.push_back(salt);
}

}  // namespace pagoda::kv
