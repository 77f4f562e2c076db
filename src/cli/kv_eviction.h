// --kv-eviction: which idle block of the cache goes first, as every command takes it.
#pragma once

#include <CLI/CLI.hpp>

#include "kv/evict/policy.h"

namespace pagoda::cli {

void add_kv_eviction_option(CLI::App& command, const kv::EvictionPolicy*& policy);

}  // namespace pagoda::cli
