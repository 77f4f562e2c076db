// Granite 3 with experts, and with an expert that all tokens share.
#include "model/architectures/architecture.h"

namespace pagoda::model {

Status describe_granitemoe(const ConfigReader& reader, Config& config) {
  RETURN_IF_ERROR(describe_granite(reader, config));
  return read_experts(reader, {.is_normalised = true}, config);
}

}  // namespace pagoda::model
