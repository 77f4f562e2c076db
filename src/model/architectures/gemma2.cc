// Gemma 2: norms around both branches, GeGLU, scaled embeddings, soft caps of scores and logits, a
// window in every other layer. The file's norms are 1 + weight already.
#include <cmath>

#include "model/architectures/architecture.h"

namespace pagoda::model {

Status describe_gemma2(const ConfigReader& reader, Config& config) {
  rotate_halves(config);
  config.branch_norms = BranchNorms::kBoth;
  config.gate = GateKind::kGeGlu;
  config.embedding_scale = std::sqrt(static_cast<float>(config.width));
  // All models of the family have these caps, but early files do not state them. A cap of 0 is
  // none.
  if (!reader.contains("attn_logit_softcapping")) config.score_cap = 50;
  if (!reader.contains("final_logit_softcapping")) config.logit_cap = 30;
  // Scores of the 27B model have a scale that its files do not state.
  if (config.layers == 46 && !config.attention_scale) {
    config.attention_scale =
        1.0f / std::sqrt(static_cast<float>(config.width) / static_cast<float>(config.heads));
  }
  if (!has_window(reader)) {
    return reader.out_of_range("attention.sliding_window", "missing",
                               "the window of every other layer");
  }
  return read_windows(reader, 2, config);
}

}  // namespace pagoda::model
