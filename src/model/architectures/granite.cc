// Granite 3 and 4 (dense): scales of embeddings, scores, branches and logits.
#include "model/architectures/architecture.h"

namespace pagoda::model {

Status describe_granite(const ConfigReader& reader, Config& config) {
  const auto read = [&](std::string_view name, float& to) -> Status {
    ASSIGN_OR_RETURN(const double given, reader.metadata().number_or(reader.key(name), 0));
    if (given == 0) return ok_status();  // none is given
    ASSIGN_OR_RETURN(const double scale, reader.positive_or(name, 1.0));
    to = static_cast<float>(scale);
    return ok_status();
  };
  RETURN_IF_ERROR(read("embedding_scale", config.embedding_scale));
  RETURN_IF_ERROR(read("residual_scale", config.residual_scale));
  float divisor = 1;
  RETURN_IF_ERROR(read("logit_scale", divisor));
  config.logit_scale = 1.0f / divisor;
  ASSIGN_OR_RETURN(const bool rotates,
                   reader.metadata().flag_or(reader.key("rope.scaling.finetuned"), true));
  if (!rotates) config.rope_of_layer.assign(config.layers, kNoRope);
  return ok_status();
}

}  // namespace pagoda::model
