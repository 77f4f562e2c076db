#include "store/disk/slot_cipher.h"

#include <openssl/sha.h>
#include <xxhash.h>

#include <algorithm>
#include <cstring>
#include <string_view>

namespace pagoda::store {
namespace {

unsigned char* raw(std::byte* at) { return reinterpret_cast<unsigned char*>(at); }
const unsigned char* raw(const std::byte* at) { return reinterpret_cast<const unsigned char*>(at); }

SecretKey sha256(std::span<const std::byte> bytes) {
  SecretKey digest;
  SHA256(raw(bytes.data()), bytes.size(), raw(digest.data()));
  return digest;
}

SecretKey derived(const SecretKey& key, std::string_view purpose) {
  std::array<std::byte, 64> bytes = {};
  std::copy(key.begin(), key.end(), bytes.begin());
  std::memcpy(bytes.data() + key.size(), purpose.data(), std::min(purpose.size(), key.size()));
  return sha256(bytes);
}

std::array<std::byte, 52> bytes_of(const kv::PageKey& key) {
  std::array<std::byte, 52> bytes;
  std::memcpy(bytes.data(), key.space.digest.data(), 16);
  std::memcpy(bytes.data() + 16, key.hash.digest.data(), 32);
  std::memcpy(bytes.data() + 48, &key.group, 4);
  return bytes;
}

// A digest of zeros would read as a free slot.
KeyDigest not_zero(KeyDigest digest) {
  if (digest == KeyDigest{}) digest.bytes[0] = std::byte{1};
  return digest;
}

}  // namespace

SlotCipher::SlotCipher(const SecretKey& key)
    : pages_(derived(key, "pagoda page v1")), name_key_(derived(key, "pagoda name v1")) {}

bool SlotCipher::seal(const kv::PageKey& page, std::span<const std::byte> bound,
                      std::span<std::byte> bytes, std::span<std::byte, kNonceBytes> nonce,
                      std::span<std::byte, kTagBytes> tag) const {
  return pages_.seal(page, bound, bytes, nonce, tag).ok();
}

bool SlotCipher::open(const kv::PageKey& page, std::span<const std::byte> bound,
                      std::span<std::byte> bytes, std::span<const std::byte, kNonceBytes> nonce,
                      std::span<const std::byte, kTagBytes> tag) const {
  return pages_.open(page, bound, bytes, nonce, tag, bytes, {});
}

KeyDigest SlotCipher::digest(const kv::PageKey& key) const {
  const std::array<std::byte, 52> plain = bytes_of(key);
  std::array<std::byte, 32 + plain.size()> bytes;
  std::copy(name_key_.begin(), name_key_.end(), bytes.begin());
  std::copy(plain.begin(), plain.end(), bytes.begin() + 32);
  const SecretKey hash = sha256(bytes);
  KeyDigest digest;
  std::copy_n(hash.begin(), digest.bytes.size(), digest.bytes.begin());
  return not_zero(digest);
}

std::array<std::byte, 16> SlotCipher::check() const {
  const SecretKey hash = derived(name_key_, "pagoda check v1");
  std::array<std::byte, 16> check;
  std::copy_n(hash.begin(), check.size(), check.begin());
  return check;
}

KeyDigest plain_digest(const kv::PageKey& key) {
  const std::array<std::byte, 52> bytes = bytes_of(key);
  const XXH128_hash_t hash = XXH3_128bits(bytes.data(), bytes.size());
  KeyDigest digest;
  std::memcpy(digest.bytes.data(), &hash.low64, 8);
  std::memcpy(digest.bytes.data() + 8, &hash.high64, 8);
  return not_zero(digest);
}

}  // namespace pagoda::store
