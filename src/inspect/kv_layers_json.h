// KV sizes as JSON, the same in every command that prints them.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "app/kv_size.h"

namespace pagoda::inspect {

nlohmann::ordered_json kv_layers_json(const app::KvLayers& group);

}  // namespace pagoda::inspect
