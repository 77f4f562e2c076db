// SmolLM 3: every fourth layer does not rotate.
#include "model/architectures/architecture.h"

namespace pagoda::model {

Status describe_smollm3(const ConfigReader& reader, Config& config) {
  for (std::uint32_t layer = 0; layer < config.layers; ++layer) {
    config.rope_of_layer.push_back((layer + 1) % 4 == 0 ? kNoRope : 0);
  }
  return read_windows(reader, 1, config);
}

}  // namespace pagoda::model
