#include "sched/row_shares.h"

#include <algorithm>

namespace pagoda::sched {
namespace {

constexpr std::uint64_t kLittle = 4;  // times as much is wanted by another
constexpr double kSurePart = 0.25;    // of a fair share

}  // namespace

void RowShares::clear(const TenantTable& tenants) {
  shares_.assign(tenants.size(), {});
  spare_ = 0;
}

void RowShares::add(TenantId tenant, std::uint64_t rows, std::int32_t priority, bool can_start) {
  Share& share = shares_[tenant.value()];
  share.rows_known += rows;
  if (!can_start) return;
  share.rows_wanted += rows;
  share.priority = std::min(share.priority, priority);
}

void RowShares::divide(const TenantTable& tenants, std::uint64_t rows) {
  std::int32_t urgent = kNever;
  std::uint64_t most = 0;
  for (const Share& share : shares_) {
    urgent = std::min(urgent, share.priority);
    most = std::max(most, share.rows_known);
  }
  wanting_.clear();
  double weights = 0;
  for (std::uint32_t i = 0; i < shares_.size(); ++i) {
    Share& share = shares_[i];
    share.wants_little = share.rows_known <= most / kLittle;
    if (share.rows_wanted == 0 || share.priority != urgent) continue;
    wanting_.push_back(i);
    weights += tenants[TenantId(i)].limits.weight;
  }
  std::sort(wanting_.begin(), wanting_.end(), [&](std::uint32_t a, std::uint32_t b) {
    if (shares_[a].wants_little != shares_[b].wants_little) return shares_[a].wants_little;
    const double clock_a = tenants[TenantId(a)].clock;
    const double clock_b = tenants[TenantId(b)].clock;
    return clock_a != clock_b ? clock_a < clock_b : a < b;
  });
  spare_ = rows;
  for (const std::uint32_t i : wanting_) {
    const double part = kSurePart * tenants[TenantId(i)].limits.weight / weights;
    const auto sure = static_cast<std::uint64_t>(part * static_cast<double>(rows));
    set_aside(shares_[i], std::max<std::uint64_t>(1, sure));
  }
  for (const std::uint32_t i : wanting_) set_aside(shares_[i], rows);
}

void RowShares::set_aside(Share& share, std::uint64_t rows) {
  const std::uint64_t given = std::min({rows, spare_, share.rows_wanted - share.rows});
  share.rows += given;
  spare_ -= given;
}

void RowShares::free_all(std::uint64_t rows) {
  for (Share& share : shares_) share.rows = 0;
  spare_ = rows;
}

void RowShares::take(TenantId tenant, std::uint64_t rows) {
  Share& share = shares_[tenant.value()];
  const std::uint64_t own = std::min(rows, share.rows);
  share.rows -= own;
  spare_ -= rows - own;
}

}  // namespace pagoda::sched
