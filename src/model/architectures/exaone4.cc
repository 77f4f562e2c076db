// EXAONE 4: norms of what branches add, and of query and key heads. Where three of four layers
// have a window, the others do not rotate.
#include "model/architectures/architecture.h"

namespace pagoda::model {

Status describe_exaone4(const ConfigReader& reader, Config& config) {
  rotate_halves(config);
  config.branch_norms = BranchNorms::kOutput;
  config.qk_norm = QkNormSpan::kHead;
  if (!has_window(reader)) return ok_status();
  RETURN_IF_ERROR(read_windows(reader, 4, config));
  choose_ropes({.full = kNoRope, .windowed = 0}, config);
  return ok_status();
}

}  // namespace pagoda::model
