#include "engine/prefetches.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "engine/tiers/tiers.h"

namespace pagoda::engine {
namespace {

constexpr std::int64_t kPrefetchNsMax = std::int64_t{60} * 1'000'000'000;

// Why the prefetch is over; nothing while it is not.
std::optional<FinishReason> end_of_prefetch(const OpenRequest& prefetch, const Tiers& tiers,
                                            std::int64_t now_ns) {
  const OpenSequence& seq = *prefetch.sequences.front();
  if (prefetch.is_cancelled) return FinishReason::kCancelled;
  if (tiers.is_settled(seq, now_ns)) return FinishReason::kStop;
  if (now_ns >= seq.deadline_ns) return FinishReason::kDeadline;
  if (now_ns - prefetch.arrived_ns > kPrefetchNsMax) return FinishReason::kStop;
  return std::nullopt;
}

}  // namespace

Status Prefetches::admit(const Request& request, const sched::TenantTable& tenants) const {
  const std::size_t left = kPrefetchesMax - open_.size();
  const auto own =
      static_cast<std::size_t>(std::count_if(open_.begin(), open_.end(), [&](const auto& prefetch) {
        return prefetch->asked.tenant == request.tenant;
      }));
  if (left > 0 && (tenants.size() == 1 || own <= left)) return ok_status();
  return Error{ErrorCode::kExhausted,
               fmt::format("tenant {} fetches {} prompts; places left for all: {}",
                           tenants[request.tenant].name, own, left)};
}

void Prefetches::begin(std::unique_ptr<OpenRequest> prefetch, Tiers& tiers) {
  tiers.prefetch(*prefetch->sequences.front(), prefetch->arrived_ns);
  open_.push_back(std::move(prefetch));
}

void Prefetches::cancel(RequestId id) {
  for (const auto& prefetch : open_) {
    if (prefetch->id == id) prefetch->is_cancelled = true;
  }
}

std::vector<Prefetches::Ended> Prefetches::take_ended(Tiers& tiers, std::int64_t now_ns) {
  std::vector<Ended> ended;
  for (std::size_t i = 0; i < open_.size();) {
    const std::optional<FinishReason> reason = end_of_prefetch(*open_[i], tiers, now_ns);
    if (!reason) {
      ++i;
      continue;
    }
    OpenSequence& seq = *open_[i]->sequences.front();
    seq.state = sched::TaskState::kFinished;
    const LoadRecord load = tiers.end(seq);
    ended.push_back({std::move(open_[i]), *reason, load});
    open_.erase(open_.begin() + static_cast<std::ptrdiff_t>(i));
  }
  return ended;
}

void Prefetches::drop_all(Tiers& tiers) {
  for (const auto& prefetch : open_) tiers.end(*prefetch->sequences.front());
  open_.clear();
}

}  // namespace pagoda::engine
