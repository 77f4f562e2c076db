// StoreRequest is a read, a write or a lookup on its way.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "kv/tiers/page_store.h"
#include "store/remote/cluster_map.h"

namespace pagoda::store {

class NodeLink;

enum class RequestKind : std::uint8_t { kLookup, kRead, kWrite };
inline constexpr std::size_t kRequestKinds = 3;

// A lookup asks for so many keys at a time: keys after a gap are not asked for.
struct LookupKey {
  enum class State : std::uint8_t { kAsked, kThere, kGone };
  State state = State::kAsked;
  std::uint8_t redirections = 0;
  NodeLink* node = nullptr;  // who owes the answer
};

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
  std::vector<LookupKey> asked = {};  // keys of a lookup from `keys_found` on
  std::size_t keys_open = 0;          // keys of them without an answer

  std::string key = {};      // the page's key in the store
  std::uint16_t slot = 0;    // the key's
  NodeLink* node = nullptr;  // who was asked for the page; valid while parts are open
  std::uint8_t redirections = 0;
  std::optional<Redirection> redirection = {};  // where the node sends us
  std::uint64_t generation = 0;
  std::string record = {};     // what has come of a read in parts; the first part of a write
  std::size_t parts_open = 0;  // parts without a reply
  std::string refusal = {};    // the server's words, if it refused

  std::size_t page_bytes() const { return kind == RequestKind::kRead ? into.size() : from.size(); }
};

}  // namespace pagoda::store
