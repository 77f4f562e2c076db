// KV sizes as JSON, the same in every command that prints them.
#pragma once

#include <nlohmann/json.hpp>

#include "cli/kv_size.h"

namespace pagoda::cli {

nlohmann::ordered_json kv_layers_json(const KvLayers& group);

}  // namespace pagoda::cli
