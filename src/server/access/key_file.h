// The file that says who may ask: tenants with their limits, and the keys that speak for them.
//
//   # what follows a # is a comment
//   tenant acme  weight=2 answers_running=16 tokens_per_minute=60000
//   key sk-Qk3…  acme
//   key sha256:9f86d081…  acme  may_publish
//   tenant ops
//   key sk-7Zp…  ops  admin
//
// A key stands there itself or as the SHA-256 of its bytes. A tenant stands before its keys.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "engine/tenant.h"
#include "server/access/digest.h"

namespace pagoda::server {

inline constexpr std::size_t kKeysMax = 4096;
inline constexpr std::size_t kTenantsMax = 4096;

struct ListedTenant {
  std::string name;
  engine::TenantLimits limits = {};
  std::int32_t priority_min = 0;  // the most urgent that its requests may ask for
};

struct ListedKey {
  Digest digest;
  std::string tenant;
  bool may_publish = false;  // parts of its prompts for everyone
  bool is_admin = false;
};

struct KeyList {
  std::vector<ListedTenant> tenants;
  std::vector<ListedKey> keys;
  bool shows_keys = false;         // one of them stands there itself, not as its hash
  bool is_open_to_others = false;  // the file, not to its owner alone
};

// Up to 512 visible ASCII characters: what can stand in a file and in a header.
Status check_key(std::string_view key);

// Errors name line and word, "keys.txt:3: word 2: …", and show no word of the text: whatever stands
// in the wrong place may be a key.
Result<KeyList> parse_keys(std::string_view text, const std::string& name);
Result<KeyList> read_key_file(const std::string& path);

}  // namespace pagoda::server
