// GLM 4 (0414, dense): norms around both branches; half of a head rotates.
#include "model/architectures/architecture.h"

namespace pagoda::model {

Status describe_glm4(const ConfigReader& reader, Config& config) {
  config.branch_norms = BranchNorms::kBoth;
  return read_windows(reader, 1, config);
}

}  // namespace pagoda::model
