// PageCipher is AES-256-GCM with the key of a file: a reader or writer of the store without the key
// learns nothing of pages and can plant none.
//
// Nonces are random, and a key is good for 2^32 of them (NIST SP 800-38D, 8.3). So that no store,
// however old and however many servers share it, comes near, each page has a key of its own: one
// key encrypts no more than the writes of one page.
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

  // Encrypts `text` in place and fills nonce and tag. The tag covers `open_text` as well.
  Status seal(const kv::PageKey& page, std::span<const std::byte> open_text,
              std::span<std::byte> text, std::span<std::byte, kNonceBytes> nonce,
              std::span<std::byte, kTagBytes> tag) const;

  // Decrypts into two pieces, one after another. False: the key or the page is another, or a bit
  // differs.
  bool open(const kv::PageKey& page, std::span<const std::byte> open_text,
            std::span<const std::byte> sealed, std::span<const std::byte, kNonceBytes> nonce,
            std::span<const std::byte, kTagBytes> tag, std::span<std::byte> first,
            std::span<std::byte> second) const;

 private:
  SecretKey key_of(const kv::PageKey& page) const;

  SecretKey key_;
};

}  // namespace pagoda::store
