#include "server/access/digest.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>

#include "base/assert.h"

namespace pagoda::server {

Digest sha256(std::string_view bytes) {
  Digest digest;
  const int done =
      EVP_Digest(bytes.data(), bytes.size(), digest.data(), nullptr, EVP_sha256(), nullptr);
  ASSERT(done == 1, "OpenSSL has SHA-256");
  return digest;
}

Digest hmac_sha256(std::string_view key, std::string_view bytes) {
  Digest digest;
  const auto* const done = HMAC(EVP_sha256(), key.data(), static_cast<int>(key.size()),
                                reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size(),
                                digest.data(), nullptr);
  ASSERT(done != nullptr, "OpenSSL has HMAC-SHA-256");
  return digest;
}

bool equal_in_constant_time(const Digest& a, const Digest& b) {
  return CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

std::string to_hex(const Digest& digest) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text;
  text.reserve(2 * digest.size());
  for (const std::uint8_t byte : digest) {
    text += kDigits[byte >> 4];
    text += kDigits[byte & 15];
  }
  return text;
}

}  // namespace pagoda::server
