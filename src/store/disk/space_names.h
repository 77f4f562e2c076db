// SpaceNames describe the spaces of a store for people: a text file beside the slabs says which
// numerics and KV format the pages of each have. No page depends on it, and nobody but `pagoda
// inspect` reads it.
//
//   FOLDER/spaces   a line a space, the newest last:
//                   "<32 hexadecimal digits> <numerics id and KV format>"
#pragma once

#include <map>
#include <string>

#include "base/result.h"
#include "kv/tiers/page_store.h"

namespace pagoda::store {

using SpaceNames = std::map<kv::SpaceId, std::string>;

// Keeps a space's description. The caller has the store open, so that no other process writes. The
// oldest spaces are forgotten beyond kSpaceNamesMax.
inline constexpr std::size_t kSpaceNamesMax = 256;
Status note_space(const std::string& folder, const kv::SpaceId& space, const std::string& text);

// Returns what is known; lines that are none are left out.
SpaceNames read_space_names(const std::string& folder);

}  // namespace pagoda::store
