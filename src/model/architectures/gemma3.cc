// Gemma 3 (text): norms around both branches, GeGLU, scaled embeddings; of six layers five see a
// window and turn faster than the sixth. The file's norms are 1 + weight already.
#include "model/architectures/architecture.h"

#include <cmath>

namespace pagoda::model {

Status describe_gemma3(const ConfigReader& reader, Config& config) {
  // Files of some converters state their bases under other names, and a wrong one is silent.
  if (!reader.contains("rope.freq_base")) {
    return reader.out_of_range("rope.freq_base", "missing", "the base of layers without a window");
  }
  rotate_halves(config);
  config.branch_norms = BranchNorms::kBoth;
  config.qk_norm = QkNormSpan::kHead;
  config.gate = GateKind::kGeGlu;
  config.embedding_scale = std::sqrt(static_cast<float>(config.width));
  // Scores of the 27B model have a scale that its files do not state.
  if (config.layers == 62 && !config.attention_scale) {
    config.attention_scale =
        1.0f / std::sqrt(static_cast<float>(config.width) / static_cast<float>(config.heads));
  }
  RETURN_IF_ERROR(read_windows(reader, 6, config));
  RopeConfig local = {.dims = config.ropes.front().dims,
                      .pairing = kernels::RopePairing::kHalfSplit};
  ASSIGN_OR_RETURN(local.base, reader.positive_or("rope.freq_base_swa", 10000.0));
  config.ropes.push_back(local);
  choose_ropes({.full = 0, .windowed = 1}, config);
  return ok_status();
}

}  // namespace pagoda::model
