#include "server/request_fingerprints.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace pagoda::server {

FingerprintDifference compare(const RequestFingerprint& before, const RequestFingerprint& now) {
  using Kind = FingerprintDifference::Kind;
  const std::size_t both = std::min(before.pieces.size(), now.pieces.size());
  std::size_t same = 0;
  while (same < both && before.pieces[same].message == now.pieces[same].message &&
         before.pieces[same].hash == now.pieces[same].hash) {
    ++same;
  }
  FingerprintDifference found;
  if (same < before.pieces.size()) {
    found.kind = same == now.pieces.size() ? Kind::kCompacted : Kind::kMessages;
  }
  if (before.session != now.session) found.kind = Kind::kSession;
  if (before.options != now.options) found.kind = Kind::kOptions;
  if (before.format != now.format) found.kind = Kind::kFormat;
  if (before.system != now.system) found.kind = Kind::kSystem;
  if (before.tools != now.tools) found.kind = Kind::kTools;
  found.tokens_reusable = same == 0 ? 0 : now.pieces[same - 1].tokens_end;
  if (same == before.pieces.size()) found.tokens_reusable = before.prompt_tokens;
  found.tokens_missed =
      before.prompt_tokens - std::min(before.prompt_tokens, found.tokens_reusable);
  return found;
}

void RequestFingerprints::add(engine::TenantId tenant, std::string id,
                              RequestFingerprint fingerprint, std::int64_t now_ns) {
  const std::lock_guard lock(mutex_);
  if (of_tenant_[tenant.value()] >= kOfTenantMax) {
    drop(std::find_if(entries_.begin(), entries_.end(),
                      [&](const Entry& entry) { return entry.tenant == tenant.value(); }));
  }
  while (!entries_.empty() &&
         (entries_.size() >= kInAllMax || now_ns - entries_.front().added_ns > kLifeNs)) {
    drop(entries_.begin());
  }
  if (const auto known = by_id_.find({tenant.value(), id}); known != by_id_.end()) {
    drop(known->second);
  }
  entries_.push_back({tenant.value(), id, now_ns, std::move(fingerprint)});
  by_id_.emplace(std::pair(tenant.value(), std::move(id)), std::prev(entries_.end()));
  ++of_tenant_[tenant.value()];
}

void RequestFingerprints::drop(Entries::iterator entry) {
  --of_tenant_[entry->tenant];
  by_id_.erase({entry->tenant, entry->id});
  entries_.erase(entry);
}

std::optional<RequestFingerprint> RequestFingerprints::find(engine::TenantId tenant,
                                                            std::string_view id,
                                                            std::int64_t now_ns) const {
  const std::lock_guard lock(mutex_);
  const auto known = by_id_.find(std::pair(tenant.value(), std::string(id)));
  if (known == by_id_.end() || now_ns - known->second->added_ns > kLifeNs) return std::nullopt;
  return known->second->fingerprint;
}

std::size_t RequestFingerprints::size() const {
  const std::lock_guard lock(mutex_);
  return entries_.size();
}

}  // namespace pagoda::server
