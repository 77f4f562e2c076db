#include "server/request_fingerprints.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace pagoda::server {

void RequestFingerprint::thin_out() {
  constexpr std::size_t kFirst = 16;
  constexpr std::size_t kLast = 128;
  if (pieces.size() <= kPiecesMax) return;
  const std::size_t between = pieces.size() - kFirst - kLast;
  const std::size_t room = kPiecesMax - kFirst - kLast;
  const std::size_t step = (between + room - 1) / room;
  std::vector<Piece> left;
  left.reserve(kPiecesMax);
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    const bool is_between = i >= kFirst && i + kLast < pieces.size();
    if (!is_between || (i - kFirst) % step == 0) left.push_back(pieces[i]);
  }
  pieces = std::move(left);
}

FingerprintDifference compare(const RequestFingerprint& before, const RequestFingerprint& now) {
  using Kind = FingerprintDifference::Kind;
  const auto is_shared = [&](const RequestFingerprint::Piece& piece) {
    return piece.index < now.pieces.size() && now.pieces[piece.index].hash == piece.hash;
  };
  const auto end = std::find_if_not(before.pieces.begin(), before.pieces.end(), is_shared);
  // Other tools and another system prompt are told wherever a template shows them.
  const bool is_other = before.tools != now.tools || before.system != now.system;
  if (!is_other && end == before.pieces.end()) return {.tokens_reusable = before.prompt_tokens};
  const bool shares_any = end != before.pieces.begin();
  const std::size_t shared = shares_any ? std::prev(end)->index + std::size_t{1} : 0;
  // The new prompt is a prefix of the earlier one: an answer is asked for again.
  if (!is_other && shared == now.pieces.size()) return {.tokens_reusable = now.prompt_tokens};
  FingerprintDifference found = {.kind = Kind::kMessages};
  if (now.messages < before.messages && now.prompt_tokens < before.prompt_tokens) {
    found.kind = Kind::kCompacted;
  }
  if (before.session != now.session) found.kind = Kind::kSession;
  if (before.options != now.options) found.kind = Kind::kOptions;
  if (before.format != now.format) found.kind = Kind::kFormat;
  if (before.system != now.system) found.kind = Kind::kSystem;
  if (before.tools != now.tools) found.kind = Kind::kTools;
  found.tokens_reusable = shares_any ? std::prev(end)->tokens_end : 0;
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
