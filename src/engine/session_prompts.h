// SessionPrompts remembers the last prompt of each session, so that its pages can be fetched before
// the next turn.
//
// Bounded in bytes and sessions. Where there is no room, the tenant that has most of it forgets the
// session that it used longest ago: nobody is pushed out by a tenant that has more. Any thread.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/token_id.h"
#include "engine/tenant.h"
#include "kv/kv_policy.h"

namespace pagoda::engine {

struct SessionPrompt {
  std::vector<TokenId> tokens;
  std::uint64_t public_tokens = 0;      // as in the request
  std::uint64_t first_turn_tokens = 0;  // as in the request
  std::optional<kv::KvPolicy> kv_policy = {};
};

// A session's name: a tenant's, within a salt.
struct SessionName {
  TenantId tenant;
  std::string cache_salt;
  std::string session;

  auto operator<=>(const SessionName&) const = default;
};

class SessionPrompts {
 public:
  static constexpr std::size_t kSessionsMax = 1024;
  static constexpr std::size_t kBytesMax = std::size_t{16} << 20;

  void note(const SessionName& name, SessionPrompt prompt);
  // Returns nullptr where none is remembered.
  std::shared_ptr<const SessionPrompt> find(const SessionName& name) const;
  void forget(TenantId tenant);
  void forget_all();
  // An upper estimate of the memory that is taken.
  std::size_t bytes() const;

 private:
  struct Entry {
    SessionName name;
    std::shared_ptr<const SessionPrompt> prompt;
    std::size_t bytes = 0;
  };
  using Entries = std::list<Entry>;  // used longest ago first
  struct Share {
    Entries entries;
    std::size_t bytes = 0;
  };

  void drop(std::map<TenantId, Share>::iterator share, Entries::iterator entry);
  std::map<TenantId, Share>::iterator largest_share(TenantId asking, std::size_t more);

  mutable std::mutex mutex_;
  std::map<TenantId, Share> shares_;  // of tenants that have an entry
  std::map<SessionName, Entries::iterator> by_name_;
  std::size_t bytes_ = 0;
};

}  // namespace pagoda::engine
