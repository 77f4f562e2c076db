// Remembers answered chats, so that a later one can be told where it left an earlier one: hashes
// and counts of tokens, no text.
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
  static constexpr std::size_t kPiecesMax = 256;  // that are remembered

  // The prompt up to the last token of a message, or of the list of tools.
  struct Piece {
    std::uint32_t index = 0;  // among the pieces of its prompt
    std::uint64_t hash = 0;   // of all tokens up to its end
    std::uint64_t tokens_end = 0;
  };

  std::uint64_t tools = 0;
  std::uint64_t system = 0;
  std::uint64_t format = 0;   // of the answer
  std::uint64_t options = 0;  // that the template gets: effort, thinking
  std::string salt = {};
  std::string session = {};
  std::uint64_t prompt_tokens = 0;
  std::uint64_t messages = 0;      // pieces that the prompt has
  std::vector<Piece> pieces = {};  // in their order: all of them, or those that thin_out() left

  // Leaves at most kPiecesMax pieces: the first ones, the last ones, and of those between them one
  // in a few. A difference between two that are left is told as if it were right behind the first.
  void thin_out();
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
    kCompacted,  // fewer messages and fewer tokens, which the earlier prompt does not begin with
    kMessages,
  };

  Kind kind = Kind::kNone;
  std::uint64_t tokens_missed = 0;    // of the earlier prompt, from the difference on
  std::uint64_t tokens_reusable = 0;  // before it
};
// `now` must have all its pieces. Where the earlier prompt's messages are all there again, or the
// new one's are the beginning of them, nothing differs but tools and system prompts.
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
