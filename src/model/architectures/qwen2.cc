// Qwen 2 and 2.5, R1-Distill-Qwen: biases of queries, keys and values come with the tensors.
#include "model/architectures/architecture.h"

namespace pagoda::model {

Status describe_qwen2(const ConfigReader& reader, Config& config) {
  rotate_halves(config);
  return read_windows(reader, 1, config);
}

}  // namespace pagoda::model
