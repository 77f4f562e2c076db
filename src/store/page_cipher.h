// AES-256-GCM with the key of a file: whoever reads or writes a store without it learns nothing of
// pages and can plant none.
//
// Nonces are random, and a key is good for 2^32 of them (NIST SP 800-38D, 8.3). So that no store,
// however old and however many servers share it, comes near, each page has a key of its own: what
// is encrypted under one key are the times that one page was written.
//
//   page key = HMAC-SHA256(key, "pagoda page key 1" | space | name | group, low byte first)
#pragma once

#include <cstddef>
#include <span>

#include "base/result.h"
#include "kv/tiers/page_store.h"
#include "store/key_file.h"

namespace pagoda::store {

inline constexpr std::size_t kNonceBytes = 12;
inline constexpr std::size_t kTagBytes = 16;

class PageCipher {
 public:
  explicit PageCipher(const SecretKey& key) : key_(key) {}

  // Encrypts `text` where it is and fills nonce and tag. `open_text` is authenticated as well.
  Status seal(const kv::PageKey& page, std::span<const std::byte> open_text,
              std::span<std::byte> text, std::span<std::byte, kNonceBytes> nonce,
              std::span<std::byte, kTagBytes> tag) const;

  // Decrypts into two pieces, one after another. False: the key, the page or a bit is another.
  bool open(const kv::PageKey& page, std::span<const std::byte> open_text,
            std::span<const std::byte> sealed, std::span<const std::byte, kNonceBytes> nonce,
            std::span<const std::byte, kTagBytes> tag, std::span<std::byte> first,
            std::span<std::byte> second) const;

 private:
  SecretKey key_of(const kv::PageKey& page) const;

  SecretKey key_;
};

}  // namespace pagoda::store
