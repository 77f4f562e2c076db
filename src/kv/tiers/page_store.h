// A tier outside the pool: a store that keeps pages by hash, for as long as it has room.
//
// The cache decides what is worth keeping and where bytes come from and go to; a store copies, in
// its own time, and reports each read and write once. Nothing about a store can change an answer: a
// page is given back only if it is whole and its label is the one that was asked for. Everything
// else (absent, damaged, late, refused) is a fault in a report, and the rows are computed instead.
//
// Thread rule: one thread, the cache's, calls a store, and no call waits for a device or a network;
// remove(), flush() and stats() may be called by any thread, and the first two may take their time.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/token_id.h"
#include "kv/hash/block_hash.h"

namespace pagoda::kv {

// All that rows depend on besides tokens: model fingerprint, numerics id, KV format, adapter. The
// first half of its SHA-256: pages of one space are never read under another.
struct SpaceId {
  std::array<std::byte, 16> digest = {};
  auto operator<=>(const SpaceId&) const = default;
};

// Returns the id of the space that the text describes: half of the text's SHA-256.
SpaceId space_id(std::string_view text);

// Whose private page it is: a number that the server's secret makes of a tenant, the same after a
// restart. All zero: public.
struct OwnerTag {
  std::array<std::byte, 8> bytes = {};
  auto operator<=>(const OwnerTag&) const = default;
};

struct PageKey {
  SpaceId space;
  BlockHash hash = {};
  std::uint32_t group = 0;
  auto operator<=>(const PageKey&) const = default;
};

// A store keeps the label beside the page's bytes and compares it when they are read.
struct PageLabel {
  PageKey key;
  OwnerTag owner;
  BlockHash parent = {};
  std::vector<TokenId> tokens;  // of the block
  bool operator==(const PageLabel&) const = default;
};

enum class StoreFault : std::uint8_t {
  kNone,
  kAbsent,     // not there, or gone since it was found
  kDamaged,    // its checksum is wrong, or it is cut short
  kForeign,    // whole, but of other tokens, another parent or another owner
  kIo,         // the device or the connection failed
  kTimeout,    // it took longer than the store's limit
  kNoRoom,     // full, and nothing may make way
  kOff,        // the store is switched off after failures
  kCancelled,  // by cancel(), before it began
};
inline constexpr std::size_t kStoreFaults = 9;
std::string_view name_of(StoreFault fault);

// Chosen by the caller; reports name it.
using StoreTicket = std::uint64_t;

// The page's bytes must stay where they are until the ticket is reported.
struct PageRead {
  StoreTicket ticket = 0;
  PageLabel label;
  std::span<std::byte> page;
};
struct PageWrite {
  StoreTicket ticket = 0;
  PageLabel label;
  std::span<const std::byte> page;
};

// The end of a read, a write (done: it will be found from now on, and after a crash once the store
// calls it durable) or a question.
struct StoreReport {
  StoreTicket ticket = 0;
  StoreFault fault = StoreFault::kNone;
  std::size_t keys_found = 0;  // of a question: how many of the first keys are there, without a gap
  // By the steady clock: it may be asked for much later. 0: only now.
  std::int64_t ended_ns = 0;
};

// A request says that pages are at another server, which may still be computing them.
struct PageOrigin {
  std::string host;
  std::uint16_t port = 0;
  bool is_computing = false;  // true: the server is asked to answer once it has them
};

struct StoreStats {
  std::uint64_t bytes_max = 0;  // 0: the store does not know
  std::uint64_t bytes_used = 0;
  std::uint64_t pages = 0;
  std::uint64_t pages_read = 0;
  std::uint64_t pages_written = 0;
  std::uint64_t bytes_read = 0;
  std::uint64_t bytes_written = 0;
  std::uint64_t pages_evicted = 0;         // made way for others
  std::uint64_t pages_evicted_unread = 0;  // ... and had never been read
  std::uint64_t requests_queued = 0;       // reads and writes not reported yet
  std::array<std::uint64_t, kStoreFaults> faults = {};
  std::uint64_t nodes = 0;  // servers that keep its pages; 0: it has none
  std::uint64_t nodes_on = 0;
  std::uint64_t redirections = 0;  // commands that a server sent to another, or asked to wait
  bool is_on = true;               // false: switched off after failures, until a retry succeeds
  bool is_ready = true;   // false: its index is still being read, its first connection being made
  std::string condition;  // for people: what is wrong, or empty
};

// The result of remove().
struct Removal {
  std::uint64_t pages = 0;
  std::uint64_t bytes = 0;
  bool overwritten = false;  // their bytes are gone from the medium, not only from the index
  std::string note = {};     // for people: what these figures do not say, or empty
};

class PageStore {
 public:
  virtual ~PageStore() = default;

  // Returns the kind of tier: "host", "disk", "redis", "memcached".
  virtual std::string_view name() const = 0;
  // True: other servers find what is written here.
  virtual bool is_shared() const { return false; }

  // How many of the first keys are there, without a gap; nothing when that must be asked for: the
  // answer is then reported under the ticket.
  virtual std::optional<std::size_t> find(StoreTicket ticket, std::span<const PageKey> keys) = 0;
  // Pages of these hashes are said to be there. Returns for how long they are worth waiting for; 0
  // where the store knows no servers, or may not ask that one.
  virtual std::int64_t expect(std::span<const BlockHash> /*hashes*/, const PageOrigin& /*origin*/) {
    return 0;
  }
  // True: find() asks over a network, which nobody does who computes nothing with the answer.
  virtual bool asks_network() const { return false; }
  // Is a write of the page needless, as far as is known? If so, its use counts.
  virtual bool keeps(const PageKey& key) = 0;

  virtual void read(PageRead read) = 0;
  // False: too much waits already, its index is being read, or the store is off; nothing is
  // reported then, and on_report() is called when that has changed.
  virtual bool write(PageWrite write) = 0;
  // False while every write would be refused, however long one waited: the store is off, its medium
  // is read-only, or writes failed one after another. stats().condition says why. Any thread.
  virtual bool takes_writes() const = 0;
  // Reads of these tickets that have not begun end with kCancelled; others end as ever. A lookup
  // that waits for another server may end so, too.
  virtual void cancel(std::span<const StoreTicket> tickets) = 0;

  // Appends what ended since the last call, in any order.
  virtual void poll(std::vector<StoreReport>& reports) = 0;
  // Called by the store's threads when poll() has something, or a write that was refused may be
  // asked for again; set once, before the first read.
  virtual void on_report(std::function<void()> notify) = 0;

  // Removes an owner's pages in all spaces; of nobody else.
  virtual Result<Removal> remove(const OwnerTag& owner) = 0;
  // Removes everything.
  virtual Result<Removal> remove_all() = 0;
  // Waits until what was written is durable; an error when it is not after that long.
  virtual Status flush(std::int64_t timeout_ns) = 0;

  virtual StoreStats stats() const = 0;
};

}  // namespace pagoda::kv
