// Overrides change a model's configuration: fields of config.json, and the rotation of a GGUF file
// or a folder alike.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "base/result.h"
#include "gguf/file.h"
#include "gguf/file_builder.h"

namespace pagoda::hf {

struct ConfigOverrides {
  // A JSON object that is merged into config.json (RFC 7396: null removes a field); or empty.
  std::string fields;
  // A JSON object of config.json's words that takes the place of the model's scaling:
  // {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 32768}; or empty.
  // The trained context becomes factor times the original one.
  std::string rope_scaling;

  bool empty() const { return fields.empty() && rope_scaling.empty(); }
};

// Writes down what was changed, so that rows of other overrides have another address.
void note_overrides(const ConfigOverrides& overrides, gguf::FileBuilder& builder);

// Errors call the two `hf_overrides` and `rope_scaling`.
Status override_config(const ConfigOverrides& overrides, nlohmann::ordered_json& config);
// The same for a GGUF file, which has no fields of config.json to change.
Result<gguf::File> override_file(const ConfigOverrides& overrides, gguf::File file);

}  // namespace pagoda::hf
