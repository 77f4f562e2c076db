// The cache's flags that several commands take.
#pragma once

#include <optional>

#include "cli/flags.h"
#include "kv/evict/policy.h"
#include "kv/memory/page_layout.h"

namespace pagoda::cli {

// --kv-cache-dtype: the element type of cached keys and values. "auto", the default, is the default
// for this CPU: unset. May be given twice (-ctk and -ctv are aliases of it) if both name the same.
void add_kv_element_option(const CommandSpec& command, std::optional<kv::memory::Element>& element);

// --kv-eviction: which reusable block of the cache goes first.
void add_kv_eviction_option(const CommandSpec& command, const kv::EvictionPolicy*& policy);

}  // namespace pagoda::cli
