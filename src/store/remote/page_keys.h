// What a page is called in a remote store, and how a value that is too large is cut.
//
//   pagoda1:SPACE:NAME:SLICE          a page, or its first part; 32 and 64 digits, a number
//   pagoda1:SPACE:NAME:SLICE.2x9000   its third part, of 9000 bytes each
//   pagoda1:generation:OWNER          of an owner's pages, where keys cannot be listed; 16 digits
//
// The part's size is in its key: parts that were cut otherwise are not found. The first part is
// written last, so that whoever finds it finds the others.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "kv/tiers/page_store.h"

namespace pagoda::store {

inline constexpr std::size_t kPartsMax = 256;
// The generation that all pages share besides their owner's.
inline constexpr std::string_view kGenerationOfAll = "pagoda1:generation:all";

std::string page_key(const kv::PageKey& key);
// Part 0 has the page's own key.
std::string part_key(std::string_view page_key, std::size_t part, std::size_t part_bytes);
bool is_part_key(std::string_view key);
// The page's own key, of that of any of its parts.
std::string_view page_of_key(std::string_view key);
std::string generation_key(const kv::OwnerTag& owner);

inline std::size_t parts_of(std::size_t bytes, std::size_t part_bytes) {
  return (bytes + part_bytes - 1) / part_bytes;
}

}  // namespace pagoda::store
