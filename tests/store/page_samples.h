// Makes labels and pages by number, for tests.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/random.h"
#include "kv/tiers/page_store.h"

namespace pagoda::store {

inline kv::OwnerTag sample_owner(std::uint64_t number) {
  kv::OwnerTag owner;
  owner.bytes.back() = static_cast<std::byte>(number);
  return owner;
}

inline kv::PageLabel sample_label(std::uint64_t number, kv::OwnerTag owner = {},
                                  std::size_t tokens = 16) {
  kv::PageLabel label;
  label.owner = owner;
  label.key.group = static_cast<std::uint32_t>(number % 3);
  for (std::size_t i = 0; i < 32; ++i) {
    label.key.hash.digest[i] = static_cast<std::byte>(random_bits(number, 1, i));
    label.parent.digest[i] = static_cast<std::byte>(random_bits(number, 2, i));
  }
  for (std::size_t i = 0; i < 16; ++i) label.key.space.digest[i] = std::byte{7};
  for (std::size_t i = 0; i < tokens; ++i) {
    label.tokens.emplace_back(static_cast<std::uint32_t>(random_bits(number, 3, i) % 50'000));
  }
  return label;
}

inline std::vector<std::byte> sample_page(std::uint64_t number, std::size_t bytes) {
  std::vector<std::byte> page(bytes);
  std::uint64_t state = number * 0x9E3779B97F4A7C15u + 1;
  for (std::byte& byte : page) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    byte = static_cast<std::byte>(state >> 56);
  }
  return page;
}

}  // namespace pagoda::store
