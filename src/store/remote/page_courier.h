// Carries pages over an exchange: which commands a read, a write or a question is made of, how many
// travel at a time, when their time is up. On the store's thread alone.
//
// Questions go before reads, reads before writes. A page is touched only while its errand is not
// over: what comes late is dropped.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <functional>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "store/page_cipher.h"
#include "store/remote/errand.h"
#include "store/remote/exchange.h"
#include "store/remote/known_keys.h"
#include "store/remote/remote_options.h"

namespace pagoda::store {

inline constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();

class PageCourier {
 public:
  // Told once of every errand, when it is over.
  using Report = std::function<void(const Errand& errand)>;

  // What is referred to outlives the courier.
  PageCourier(const RemoteOptions& options, const PageCipher* cipher, KnownKeys& known,
              const Clock& clock, Report report);

  void take(Errand errand);
  // Reads that have not begun.
  void cancel(std::span<const kv::StoreTicket> tickets);
  // Begins as much as may travel.
  void launch(Exchange& exchange);
  // Ends what is late.
  void expire();
  // Ends everything: what has begun with kIo, what has not with kOff.
  void abandon();

  std::int64_t next_deadline_ns() const;
  // The number of the first write that is not over.
  std::uint64_t first_write() const;
  std::uint64_t replies() const { return replies_; }
  // Nothing comes any more: requests timed out one after another, and no reply in between.
  bool is_stalled() const;

 private:
  using Shared = std::shared_ptr<Errand>;

  void begin(const Shared& errand, Exchange& exchange);
  void ask_keys(const Shared& errand, Exchange& exchange);
  void hear_key(const Shared& errand, std::size_t key, std::size_t chunk_end, Exchange& exchange,
                const Reply& reply);
  void read(const Shared& errand, Exchange& exchange);
  void hear_part(const Shared& errand, Reply& reply);
  void write(const Shared& errand, Exchange& exchange);
  void write_parts(const Shared& errand, Exchange& exchange);
  void write_part(const Shared& errand, std::size_t part, std::string_view value,
                  Exchange& exchange);
  // The two that an errand's pages have. A write goes on when it knows them, a read meanwhile.
  void ask_generation(const Shared& errand, Exchange& exchange);
  void hear_generation(const Shared& errand, const Reply& reply);

  void note(Errand& errand, const Reply& reply);
  void finish(const Shared& errand, kv::StoreFault fault);
  void learn(const Errand& errand);
  bool fits(const Errand& errand, const Exchange& exchange);

  const RemoteOptions& options_;
  const PageCipher* cipher_;
  KnownKeys& known_;
  const Clock& clock_;
  Report report_;

  std::array<std::deque<Shared>, kErrandKinds> waiting_;
  std::vector<Shared> begun_;
  std::string record_;          // being written: pages are of one size, so its room is too
  std::uint32_t timeouts_ = 0;  // since the last reply
  std::uint64_t replies_ = 0;
  std::int64_t last_reply_ns_ = 0;
};

}  // namespace pagoda::store
