// gpt-oss: experts behind a clamped gate, attention sinks, a window in every other layer. Its YaRN
// ramp runs between dimensions that are not rounded.
#include "model/architectures/architecture.h"

namespace pagoda::model {

Status describe_gpt_oss(const ConfigReader& reader, Config& config) {
  for (const char* const key : {"attention.sliding_window", "rope.scaling.type"}) {
    RETURN_IF_ERROR(reader.require(key));
  }
  rotate_halves(config);
  ASSIGN_OR_RETURN(config.ropes.front().rounds_yarn_ramp,
                   reader.metadata().flag_or(reader.key("rope.scaling.yarn_truncate"), false));
  config.gate = GateKind::kClampedSwiGlu;
  config.has_sinks = true;
  RETURN_IF_ERROR(read_experts(reader, {.score = kernels::RouterScore::kSoftmaxOfChosen}, config));
  return read_windows(reader, 2, config);
}

}  // namespace pagoda::model
