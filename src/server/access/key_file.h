// The key file: tenants with their limits, and the keys of each.
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
  std::int32_t priority_min = 0;  // the most urgent priority that its requests may have
};

struct ListedKey {
  Digest digest;
  std::string tenant;
  bool may_publish = false;  // may share parts of its prompts with everyone
  bool is_admin = false;
};

struct KeyList {
  std::vector<ListedTenant> tenants;
  std::vector<ListedKey> keys;
  bool shows_keys = false;         // a key is in the file itself, not as its hash
  bool is_open_to_others = false;  // others than the owner may read the file
};

// A key has up to 512 visible ASCII characters, so that it fits a line of the file and a header.
Status check_key(std::string_view key);

// Errors name line and word, "keys.txt:3: word 2: …", and repeat no word of the text, because a
// misplaced word may be a key.
Result<KeyList> parse_keys(std::string_view text, const std::string& name);
Result<KeyList> read_key_file(const std::string& path);

}  // namespace pagoda::server
