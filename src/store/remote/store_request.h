// StoreRequest is a read, a write or a lookup on its way.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "kv/tiers/page_store.h"

namespace pagoda::store {

enum class RequestKind : std::uint8_t { kLookup, kRead, kWrite };
inline constexpr std::size_t kRequestKinds = 3;

struct StoreRequest {
  RequestKind kind = RequestKind::kRead;
  kv::StoreTicket ticket = 0;
  std::int64_t deadline_ns = 0;
  std::uint64_t number = 0;  // in the order of calls

  std::vector<kv::PageKey> keys = {};    // keys of a lookup
  kv::PageLabel label = {};              // label of a read or a write
  std::span<std::byte> into = {};        // touched until `over`, never after
  std::span<const std::byte> from = {};  // likewise

  bool over = false;  // true: reported
  kv::StoreFault fault = kv::StoreFault::kNone;
  std::size_t keys_found = 0;
  std::uint64_t generation = 0;
  std::string record = {};     // what has come of a read; the first part of a write
  std::size_t parts_open = 0;  // parts without a reply
  std::string refusal = {};    // the server's words, if it refused

  std::size_t page_bytes() const { return kind == RequestKind::kRead ? into.size() : from.size(); }
};

}  // namespace pagoda::store
