// Makes the key of a page in a remote store, and cuts values that are too large into parts.
//
//   pagoda1:SPACE:NAME:SLICE          a page, or its first part; 32 and 64 digits, a number
//   pagoda1:SPACE:NAME:SLICE.2x9000   its third part, of 9000 bytes each
//   pagoda1:{SPACE:NAME:SLICE}        the same page in a cluster, which looks at the hash tag
//   pagoda1:generation:OWNER          of an owner's pages, where keys cannot be listed; 16 digits
//
// NAME is the block hash and SLICE the KV cache group. The part's size is in its key: parts of
// another size are not found. The first part is written last, so that a reader who finds it finds
// the others.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "kv/tiers/page_store.h"

namespace pagoda::store {

inline constexpr std::size_t kPartsMax = 256;
// All pages share this generation besides their owner's.
inline constexpr std::string_view kGenerationOfAll = "pagoda1:generation:all";

// How keys of pages look. kTagged: pagoda1:{SPACE:NAME:SLICE}, so that a cluster keeps the parts of
// a page together; keys of the other form are not found.
enum class KeyForm : std::uint8_t { kPlain, kTagged };

std::string page_key(const kv::PageKey& key, KeyForm form = KeyForm::kPlain);
// Part 0 has the page's own key.
std::string part_key(std::string_view page_key, std::size_t part, std::size_t part_bytes);
bool is_part_key(std::string_view key);
// Returns the page's own key for the key of any of its parts.
std::string_view page_of_key(std::string_view key);
std::string generation_key(const kv::OwnerTag& owner);

inline std::size_t parts_of(std::size_t bytes, std::size_t part_bytes) {
  return (bytes + part_bytes - 1) / part_bytes;
}

}  // namespace pagoda::store
