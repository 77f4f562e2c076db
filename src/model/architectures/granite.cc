// Granite 3 and 4 (dense): scales of embeddings, scores, branches and logits.
#include "model/architectures/architecture.h"

namespace pagoda::model {

Status describe_granite(const ConfigReader& reader, Config& config) {
  ASSIGN_OR_RETURN(config.embedding_scale, reader.scale_or("embedding_scale", 1));
  ASSIGN_OR_RETURN(config.residual_scale, reader.scale_or("residual_scale", 1));
  ASSIGN_OR_RETURN(const float divisor, reader.scale_or("logit_scale", 1));
  config.logit_scale = 1.0f / divisor;
  ASSIGN_OR_RETURN(const bool rotates,
                   reader.metadata().flag_or(reader.key("rope.scaling.finetuned"), true));
  if (!rotates) config.rope_of_layer.assign(config.layers, kNoRope);
  return ok_status();
}

}  // namespace pagoda::model
