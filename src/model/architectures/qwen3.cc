// Qwen 3: RMS norms of query and key heads.
#include "model/architectures/architecture.h"

namespace pagoda::model {

Status describe_qwen3(const ConfigReader& reader, Config& config) {
  rotate_halves(config);
  config.qk_norm = QkNormSpan::kHead;
  return read_windows(reader, 1, config);
}

}  // namespace pagoda::model
