#include "engine/tiers/page_reads.h"

#include <utility>

namespace pagoda::engine {

void PageReads::begin(const Pending& read, kv::PageLabel label, std::span<std::byte> page,
                      std::int64_t now_ns) {
  const kv::StoreTicket ticket = ++tickets_;
  pending_[ticket] = read;
  rates_[read.store].begin(now_ns);
  options_.stores[read.store]->read({.ticket = ticket, .label = std::move(label), .page = page});
}

std::optional<PageReads::Pending> PageReads::end(const kv::StoreReport& report,
                                                 std::int64_t now_ns) {
  const auto found = pending_.find(report.ticket);
  if (found == pending_.end()) return std::nullopt;
  const Pending read = found->second;
  pending_.erase(found);
  const bool came = report.fault == kv::StoreFault::kNone;
  const auto bytes = static_cast<double>(options_.page_at(kv::BlockId(0)).size());
  const std::int64_t ended_ns = report.ended_ns != 0 ? report.ended_ns : now_ns;
  rates_[read.store].end(ended_ns, came ? bytes : 0);
  return read;
}

void PageReads::cancel(const Load& load) const {
  std::vector<std::vector<kv::StoreTicket>> tickets(options_.stores.size());
  for (const auto& [ticket, read] : pending_) {
    if (read.load == &load) tickets[read.store].push_back(ticket);
  }
  for (std::size_t store = 0; store < tickets.size(); ++store) {
    if (!tickets[store].empty()) options_.stores[store]->cancel(tickets[store]);
  }
}

}  // namespace pagoda::engine
