// Qwen 3 with experts.
#include "model/architectures/architecture.h"

namespace pagoda::model {

Status describe_qwen3moe(const ConfigReader& reader, Config& config) {
  RETURN_IF_ERROR(describe_qwen3(reader, config));
  return read_experts(reader, {.is_normalised = true}, config);
}

}  // namespace pagoda::model
