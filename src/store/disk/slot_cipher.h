// SlotCipher keeps pages secret at rest: AES-256-GCM for slots, and digests of keys that nobody
// without the key file can compute from a guessed prompt.
//
// Thread rule: every call may come from any thread.
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <span>
#include <string>

#include "base/result.h"
#include "store/disk/format.h"
#include "store/page_cipher.h"

namespace pagoda::store {

class SlotCipher {
 public:
  explicit SlotCipher(const SecretKey& key);

  // Encrypts in place under a fresh random nonce, and writes nonce and tag. `bound` is not
  // encrypted, but the tag covers it. False: the library refused.
  bool seal(const kv::PageKey& page, std::span<const std::byte> bound, std::span<std::byte> bytes,
            std::span<std::byte, kNonceBytes> nonce, std::span<std::byte, kTagBytes> tag) const;
  // False: the bytes are not what seal() made of this page, and are worthless now.
  bool open(const kv::PageKey& page, std::span<const std::byte> bound, std::span<std::byte> bytes,
            std::span<const std::byte, kNonceBytes> nonce,
            std::span<const std::byte, kTagBytes> tag) const;

  KeyDigest digest(const kv::PageKey& key) const;
  // Identifies the key without giving it away.
  std::array<std::byte, 16> check() const;

 private:
  PageCipher pages_;
  SecretKey name_key_;
};

// Computes SlotCipher::digest() without a key.
KeyDigest plain_digest(const kv::PageKey& key);

}  // namespace pagoda::store
