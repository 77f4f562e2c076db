#include "store/disk/slot_cipher.h"

#include <fmt/format.h>
#include <openssl/sha.h>
#include <sys/stat.h>
#include <xxhash.h>

#include <algorithm>
#include <bit>
#include <cctype>
#include <cstring>
#include <fstream>
#include <iterator>
#include <string_view>

namespace pagoda::store {
namespace {

unsigned char* raw(std::byte* at) { return reinterpret_cast<unsigned char*>(at); }
const unsigned char* raw(const std::byte* at) { return reinterpret_cast<const unsigned char*>(at); }

SlotCipher::Secret sha256(std::span<const std::byte> bytes) {
  SlotCipher::Secret digest;
  SHA256(raw(bytes.data()), bytes.size(), raw(digest.data()));
  return digest;
}

SlotCipher::Secret derived(const SlotCipher::Secret& key, std::string_view purpose) {
  std::array<std::byte, 64> bytes = {};
  std::copy(key.begin(), key.end(), bytes.begin());
  std::memcpy(bytes.data() + key.size(), purpose.data(), std::min(purpose.size(), key.size()));
  return sha256(bytes);
}

std::array<std::byte, 52> bytes_of(const kv::PageKey& key) {
  std::array<std::byte, 52> bytes;
  std::memcpy(bytes.data(), key.space.digest.data(), 16);
  std::memcpy(bytes.data() + 16, key.name.digest.data(), 32);
  std::memcpy(bytes.data() + 48, &key.slice, 4);
  return bytes;
}

// A digest of zeros would read as a free slot.
KeyDigest not_zero(KeyDigest digest) {
  if (digest == KeyDigest{}) digest.bytes[0] = std::byte{1};
  return digest;
}

bool decode_hex(std::string_view text, SlotCipher::Secret& key) {
  if (text.size() != 2 * key.size()) return false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto c = static_cast<unsigned char>(text[i]);
    if (std::isxdigit(c) == 0) return false;
    const int digit = std::isdigit(c) != 0 ? c - '0' : std::tolower(c) - 'a' + 10;
    key[i / 2] = static_cast<std::byte>((std::to_integer<int>(key[i / 2]) << 4) | digit);
  }
  return true;
}

}  // namespace

SlotCipher::SlotCipher(const Secret& key)
    : pages_(std::bit_cast<std::array<unsigned char, 32>>(derived(key, "pagoda page v1"))),
      name_key_(derived(key, "pagoda name v1")) {}

Result<SlotCipher> SlotCipher::from_key_file(const std::string& path) {
  struct stat now = {};
  if (::stat(path.c_str(), &now) != 0) {
    return Error{ErrorCode::kNotFound, fmt::format("key file {}: cannot be read", path)};
  }
  if ((now.st_mode & (S_IRWXG | S_IRWXO)) != 0) {
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("key file {}: others may read it (mode {:o}); chmod 600 it", path,
                             now.st_mode & 0777)};
  }
  std::ifstream file(path, std::ios::binary);
  std::string text(std::istreambuf_iterator<char>(file), {});
  Secret key = {};
  if (text.size() == key.size()) {
    std::memcpy(key.data(), text.data(), key.size());
    return SlotCipher(key);
  }
  if (text.ends_with('\n')) text.pop_back();
  if (decode_hex(text, key)) return SlotCipher(key);
  return Error{ErrorCode::kInvalidArgument,
               fmt::format("key file {}: {} bytes; it must hold 32 bytes or 64 hexadecimal digits",
                           path, text.size())};
}

bool SlotCipher::seal(std::span<const std::byte> bound, std::span<std::byte> bytes,
                      std::span<std::byte, kNonceBytes> nonce,
                      std::span<std::byte, kTagBytes> tag) const {
  return pages_.seal(bound, bytes, nonce, tag).ok();
}

bool SlotCipher::open(std::span<const std::byte> bound, std::span<std::byte> bytes,
                      std::span<const std::byte, kNonceBytes> nonce,
                      std::span<const std::byte, kTagBytes> tag) const {
  return pages_.open(bound, bytes, nonce, tag, bytes, {});
}

KeyDigest SlotCipher::digest(const kv::PageKey& key) const {
  const std::array<std::byte, 52> plain = bytes_of(key);
  std::array<std::byte, 32 + plain.size()> bytes;
  std::copy(name_key_.begin(), name_key_.end(), bytes.begin());
  std::copy(plain.begin(), plain.end(), bytes.begin() + 32);
  const Secret hash = sha256(bytes);
  KeyDigest digest;
  std::copy_n(hash.begin(), digest.bytes.size(), digest.bytes.begin());
  return not_zero(digest);
}

std::array<std::byte, 16> SlotCipher::check() const {
  const Secret hash = derived(name_key_, "pagoda check v1");
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
