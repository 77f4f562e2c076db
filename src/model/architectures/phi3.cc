// Phi 3, 3.5 and 4: queries, keys and values are one matrix, gates and ups
// another (model/weights.cc), and a window holds for every layer.
#include "model/architectures/architecture.h"

namespace pagoda::model {

Status describe_phi3(const ConfigReader& reader, Config& config) {
  rotate_halves(config);
  // Files of the first Phi 3 models with a context of 4,096 lack their window.
  const bool is_first = config.context == 4096 && (config.layers == 32 || config.layers == 40);
  ASSIGN_OR_RETURN(const std::uint64_t window,
                   reader.metadata().unsigned_value_or(reader.key("attention.sliding_window"),
                                                       is_first ? 2047 : 0));
  if (window == 0 || window >= config.context) return ok_status();
  config.attention.assign(config.layers, {.window = static_cast<std::uint32_t>(window)});
  return ok_status();
}

}  // namespace pagoda::model
