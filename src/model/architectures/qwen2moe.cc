// Qwen 1.5 and 2 with experts: those of qwen2 and one that all tokens share, behind a gate of its
// own. Weights of the chosen do not add up to 1.
#include "model/architectures/architecture.h"

namespace pagoda::model {

Status describe_qwen2moe(const ConfigReader& reader, Config& config) {
  RETURN_IF_ERROR(describe_qwen2(reader, config));
  return read_experts(reader, {}, config);
}

}  // namespace pagoda::model
