// What is remembered of answered chats, so that a later one can be told where it left an earlier
// one: hashes and counts of tokens, no text.
//
// A tenant has kOfTenantMax of them and all tenants together kInAllMax, and each ends after an
// hour; the oldest go first. Any thread.
#pragma once

#include <cstdint>
#include <list>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/tenant.h"

namespace pagoda::server {

struct RequestFingerprint {
  static constexpr std::size_t kMessagesMax = 256;
  static constexpr std::uint32_t kToolList = UINT32_MAX;

  // The tokens that one message, or the list of tools, has in the prompt.
  struct Piece {
    std::uint32_t message = 0;  // or kToolList
    std::uint64_t hash = 0;
    std::uint64_t tokens_end = 0;  // of the prompt, up to its last

    bool operator==(const Piece&) const = default;
  };

  std::uint64_t tools = 0;
  std::uint64_t system = 0;
  std::uint64_t format = 0;   // of the answer
  std::uint64_t options = 0;  // that the template gets: effort, thinking
  std::string salt = {};
  std::string session = {};
  std::uint64_t prompt_tokens = 0;
  std::vector<Piece> pieces = {};  // at most kMessagesMax; the last one stands for all that follow
};

// How a request differs from an earlier one, in the order in which a cache would notice.
struct FingerprintDifference {
  enum class Kind : std::uint8_t {
    kNone,
    kTools,
    kSystem,
    kFormat,
    kOptions,
    kSession,
    kCompacted,  // the conversation is shorter
    kMessages,
  };

  Kind kind = Kind::kNone;
  std::uint64_t tokens_missed = 0;    // of the earlier prompt, from the difference on
  std::uint64_t tokens_reusable = 0;  // before it
};
FingerprintDifference compare(const RequestFingerprint& before, const RequestFingerprint& now);

class RequestFingerprints {
 public:
  static constexpr std::size_t kOfTenantMax = 256;
  static constexpr std::size_t kInAllMax = 4096;
  static constexpr std::int64_t kLifeNs = std::int64_t{3600} * 1'000'000'000;

  void add(engine::TenantId tenant, std::string id, RequestFingerprint fingerprint,
           std::int64_t now_ns);
  // Nothing where the tenant has none of this id, or had it too long ago.
  std::optional<RequestFingerprint> find(engine::TenantId tenant, std::string_view id,
                                         std::int64_t now_ns) const;
  std::size_t size() const;

 private:
  struct Entry {
    std::uint32_t tenant;
    std::string id;
    std::int64_t added_ns;
    RequestFingerprint fingerprint;
  };
  using Entries = std::list<Entry>;  // the oldest first

  void drop(Entries::iterator entry);

  mutable std::mutex mutex_;
  Entries entries_;
  std::map<std::pair<std::uint32_t, std::string>, Entries::iterator> by_id_;
  std::map<std::uint32_t, std::size_t> of_tenant_;
};

}  // namespace pagoda::server
