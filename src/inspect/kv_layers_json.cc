#include "inspect/kv_layers_json.h"

#include <nlohmann/json.hpp>

namespace pagoda::inspect {

nlohmann::ordered_json kv_layers_json(const app::KvLayers& group) {
  nlohmann::ordered_json json = {{"layers", group.layers},
                                 {"kv_heads", group.kv_heads},
                                 {"key_dim", group.key_dim},
                                 {"value_dim", group.value_dim}};
  if (group.window != 0) json["window"] = group.window;
  if (group.latent) json["latent"] = true;
  return json;
}

}  // namespace pagoda::inspect
