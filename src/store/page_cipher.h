// AES-256-GCM with the key of a file: whoever reads or writes a store without it learns nothing of
// pages and can plant none.
//
// Nonces are random: a key is good for 2^32 pages (NIST SP 800-38D, 8.3).
#pragma once

#include <cstddef>
#include <span>

#include "base/result.h"
#include "store/key_file.h"

namespace pagoda::store {

inline constexpr std::size_t kNonceBytes = 12;
inline constexpr std::size_t kTagBytes = 16;

class PageCipher {
 public:
  explicit PageCipher(const SecretKey& key) : key_(key) {}

  // Encrypts `text` where it is and fills nonce and tag. `open_text` is authenticated as well.
  Status seal(std::span<const std::byte> open_text, std::span<std::byte> text,
              std::span<std::byte, kNonceBytes> nonce, std::span<std::byte, kTagBytes> tag) const;

  // Decrypts into two pieces, one after another. False: the key or a bit is another.
  bool open(std::span<const std::byte> open_text, std::span<const std::byte> sealed,
            std::span<const std::byte, kNonceBytes> nonce,
            std::span<const std::byte, kTagBytes> tag, std::span<std::byte> first,
            std::span<std::byte> second) const;

 private:
  SecretKey key_;
};

}  // namespace pagoda::store
