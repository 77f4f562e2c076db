// Llama 1 to 3, Mistral 7B, Nemo and Small up to 3.1, SmolLM2: all that is default.
#include "model/architectures/architecture.h"

namespace pagoda::model {

Status describe_llama(const ConfigReader& reader, Config& config) {
  return read_windows(reader, 1, config);
}

}  // namespace pagoda::model
