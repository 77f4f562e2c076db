// What a block of the served cache would take in smaller KV cache dtypes, for advice.
#pragma once

#include "kv/memory/page_layout.h"
#include "server/json.h"

namespace pagoda::serve {

// Returns the bytes of a page of the layout by dtype, {"int8": 34816, …}: of those dtypes that can
// keep its rows in less than it takes now, the most exact first.
server::Json block_bytes_by_dtype(const kv::memory::PageLayout& layout);

}  // namespace pagoda::serve
