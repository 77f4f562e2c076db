// Translates the config.json fields that only DeepSeek V2 and V3, Kimi K2 and GLM 4.7 Flash have.
#pragma once

#include "base/result.h"
#include "hf/json_file.h"
#include "hf/key_writer.h"

namespace pagoda::hf {

// Writes the keys of latents and experts.
Status write_deepseek(const JsonFields& config, const KeyWriter& keys);

}  // namespace pagoda::hf
