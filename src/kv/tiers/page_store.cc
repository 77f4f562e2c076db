#include "kv/tiers/page_store.h"

#include <openssl/evp.h>

#include <cstring>

#include "base/assert.h"

namespace pagoda::kv {

SpaceId space_id(std::string_view text) {
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest = {};
  const int made =
      EVP_Digest(text.data(), text.size(), digest.data(), nullptr, EVP_sha256(), nullptr);
  ASSERT(made == 1, "SHA-256 is always there");
  SpaceId space;
  std::memcpy(space.digest.data(), digest.data(), space.digest.size());
  return space;
}

std::string_view name_of(StoreFault fault) {
  constexpr std::array<std::string_view, kStoreFaults> kNames = {
      "none", "absent", "damaged", "foreign", "io", "timeout", "no_room", "off", "cancelled"};
  return kNames[static_cast<std::size_t>(fault)];
}

}  // namespace pagoda::kv
