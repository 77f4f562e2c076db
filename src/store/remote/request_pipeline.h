// RequestPipeline carries pages over a connection: it decides which commands a read, a write or a
// lookup is made of, how many travel at a time, and when their time is up. It runs on the store's
// thread alone.
//
// Lookups go before reads, reads before writes. A page is touched only while its request is not
// over: late replies are dropped.
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
#include "store/remote/known_keys.h"
#include "store/remote/remote_connection.h"
#include "store/remote/remote_options.h"
#include "store/remote/store_request.h"

namespace pagoda::store {

inline constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();

class RequestPipeline {
 public:
  // Called once for every request, when it is over.
  using Report = std::function<void(const StoreRequest& request)>;

  // Referenced arguments outlive the pipeline.
  RequestPipeline(const RemoteOptions& options, const PageCipher* cipher, KnownKeys& known,
                  const Clock& clock, Report report);

  void take(StoreRequest request);
  // Cancels reads that have not begun.
  void cancel(std::span<const kv::StoreTicket> tickets);
  // Begins as many requests as may travel.
  void launch(RemoteConnection& connection);
  // Ends requests that are late.
  void expire();
  // Ends every request: those that have begun with kIo, the others with kOff.
  void abandon();

  std::int64_t next_deadline_ns() const;
  // Returns the number of the first write that is not over.
  std::uint64_t first_write() const;
  std::uint64_t replies() const { return replies_; }
  // True: requests timed out one after another, without a reply in between.
  bool is_stalled() const;

 private:
  using Shared = std::shared_ptr<StoreRequest>;

  void begin(const Shared& request, RemoteConnection& connection);
  void ask_keys(const Shared& request, RemoteConnection& connection);
  void on_key_reply(const Shared& request, std::size_t key, std::size_t chunk_end,
                    RemoteConnection& connection, const Reply& reply);
  void read(const Shared& request, RemoteConnection& connection);
  void on_part_reply(const Shared& request, Reply& reply);
  void write(const Shared& request, RemoteConnection& connection);
  void write_parts(const Shared& request, RemoteConnection& connection);
  void write_part(const Shared& request, std::size_t part, std::string_view value,
                  RemoteConnection& connection);
  // Asks for the two generations of a request's page. A write goes on when it knows them, a read
  // meanwhile.
  void ask_generation(const Shared& request, RemoteConnection& connection);
  void on_generation_reply(const Shared& request, const Reply& reply);

  void note(StoreRequest& request, const Reply& reply);
  void finish(const Shared& request, kv::StoreFault fault);
  void learn(const StoreRequest& request);
  bool fits(const StoreRequest& request, const RemoteConnection& connection);

  const RemoteOptions& options_;
  const PageCipher* cipher_;
  KnownKeys& known_;
  const Clock& clock_;
  Report report_;

  std::array<std::deque<Shared>, kRequestKinds> waiting_;
  std::vector<Shared> begun_;
  std::string record_;  // the record being written: pages have one size, so the memory is kept
  std::uint32_t timeouts_ = 0;  // since the last reply
  std::uint64_t replies_ = 0;
  std::int64_t last_reply_ns_ = 0;
};

}  // namespace pagoda::store
