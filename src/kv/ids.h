// Names inside the cache.
#pragma once

#include "base/strong_id.h"

namespace pagoda::kv {

// A page's place in the pool: page p starts at byte p * page_bytes.
using BlockId = StrongId<struct BlockTag, std::uint32_t>;

}  // namespace pagoda::kv
