// Makes pages by number, so that any byte out of place shows.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "base/random.h"
#include "kv/tiers/page_store.h"

namespace pagoda::store {

inline kv::OwnerTag sample_owner(std::uint64_t number) {
  kv::OwnerTag owner;
  std::memcpy(owner.bytes.data(), &number, sizeof(number));
  return owner;
}

// Makes the label of page `number` of `owner`; tokens, hash and parent follow from the number.
inline kv::PageLabel sample_label(std::uint64_t number, std::uint32_t block_tokens,
                                  std::uint64_t owner = 0) {
  kv::PageLabel label;
  for (std::uint64_t i = 0; i < 4; ++i) {
    const std::uint64_t name = random_bits(number, 1, i);
    const std::uint64_t parent = random_bits(number, 2, i);
    std::memcpy(label.key.hash.digest.data() + 8 * i, &name, 8);
    std::memcpy(label.parent.digest.data() + 8 * i, &parent, 8);
  }
  label.key.space.digest[0] = static_cast<std::byte>(number % 3);
  label.key.group = static_cast<std::uint32_t>(number % 2);
  label.owner = sample_owner(owner);
  for (std::uint32_t i = 0; i < block_tokens; ++i) {
    label.tokens.emplace_back(static_cast<std::uint32_t>(random_bits(number, 3, i) % 50000));
  }
  return label;
}

inline std::vector<std::byte> sample_page(std::uint64_t number, std::uint64_t version,
                                          std::size_t bytes) {
  std::vector<std::byte> page(bytes);
  for (std::size_t at = 0; at < bytes; at += 8) {
    const std::uint64_t word = random_bits(number, 100 + version, at);
    std::memcpy(page.data() + at, &word, std::min<std::size_t>(8, bytes - at));
  }
  return page;
}

}  // namespace pagoda::store
