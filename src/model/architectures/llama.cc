// Llama 1 to 3, Mistral 7B, Nemo and Small up to 3.1, SmolLM2: all that is default. Mixtral has
// experts beside.
#include "model/architectures/architecture.h"

namespace pagoda::model {

Status describe_llama(const ConfigReader& reader, Config& config) {
  if (has_experts(reader)) {
    RETURN_IF_ERROR(read_experts(reader, {.is_normalised = true}, config));
  }
  return read_windows(reader, 1, config);
}

}  // namespace pagoda::model
