// Mistral Small 3.2 and newer, Ministral 3: llama, whose queries may be scaled by position.
#include "model/architectures/architecture.h"

namespace pagoda::model {

Status describe_mistral3(const ConfigReader& reader, Config& config) {
  ASSIGN_OR_RETURN(const float slope, reader.scale_or("attention.temperature_scale", 0));
  if (slope != 0) {
    const std::uint32_t original = config.ropes.front().original_context;
    ASSIGN_OR_RETURN(const std::uint32_t context,
                     original > 0
                         ? reader.count_or("attention.temperature_length", original, kContextMax)
                         : reader.count("attention.temperature_length", kContextMax));
    config.query_scale = QueryScale{.slope = slope, .context = context};
  }
  return describe_llama(reader, config);
}

}  // namespace pagoda::model
