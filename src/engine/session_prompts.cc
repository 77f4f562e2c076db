#include "engine/session_prompts.h"

#include <iterator>
#include <utility>

namespace pagoda::engine {
namespace {

// The name stands in the entry and in the map, each of which has nodes of its own.
std::size_t bytes_of(const SessionName& name, const SessionPrompt& prompt) {
  constexpr std::size_t kNodeBytes = 512;
  return kNodeBytes + 2 * (name.cache_salt.size() + name.session.size()) +
         prompt.tokens.size() * sizeof(TokenId);
}

}  // namespace

void SessionPrompts::note(const SessionName& name, SessionPrompt prompt) {
  const std::size_t more = bytes_of(name, prompt);
  auto kept = std::make_shared<const SessionPrompt>(std::move(prompt));
  const std::lock_guard lock(mutex_);
  if (const auto known = by_name_.find(name); known != by_name_.end()) {
    drop(shares_.find(name.tenant), known->second);
  }
  while (by_name_.size() >= kSessionsMax || bytes_ + more > kBytesMax) {
    const auto largest = largest_share(name.tenant, more);
    if (largest == shares_.end()) return;
    drop(largest, largest->second.entries.begin());
  }
  Share& share = shares_[name.tenant];
  share.entries.push_back({name, std::move(kept), more});
  share.bytes += more;
  bytes_ += more;
  by_name_.emplace(name, std::prev(share.entries.end()));
}

// The tenant that would have most, with `more` bytes for the one who asks; the end where both are
// the same, which has nothing to forget.
std::map<TenantId, SessionPrompts::Share>::iterator SessionPrompts::largest_share(
    TenantId asking, std::size_t more) {
  auto largest = shares_.find(asking);
  std::size_t most = more + (largest == shares_.end() ? 0 : largest->second.bytes);
  for (auto share = shares_.begin(); share != shares_.end(); ++share) {
    if (share->first == asking || share->second.bytes <= most) continue;
    largest = share;
    most = share->second.bytes;
  }
  return largest;
}

std::shared_ptr<const SessionPrompt> SessionPrompts::find(const SessionName& name) const {
  const std::lock_guard lock(mutex_);
  const auto known = by_name_.find(name);
  return known == by_name_.end() ? nullptr : known->second->prompt;
}

void SessionPrompts::forget(TenantId tenant) {
  const std::lock_guard lock(mutex_);
  for (auto share = shares_.find(tenant); share != shares_.end(); share = shares_.find(tenant)) {
    drop(share, share->second.entries.begin());
  }
}

void SessionPrompts::forget_all() {
  const std::lock_guard lock(mutex_);
  by_name_.clear();
  shares_.clear();
  bytes_ = 0;
}

std::size_t SessionPrompts::bytes() const {
  const std::lock_guard lock(mutex_);
  return bytes_;
}

void SessionPrompts::drop(std::map<TenantId, Share>::iterator share, Entries::iterator entry) {
  bytes_ -= entry->bytes;
  share->second.bytes -= entry->bytes;
  by_name_.erase(entry->name);
  share->second.entries.erase(entry);
  if (share->second.entries.empty()) shares_.erase(share);
}

}  // namespace pagoda::engine
