// Rotations: `rope_parameters` and `rope_scaling` of config.json in GGUF's keys.
#pragma once

#include <cstdint>

#include "base/result.h"
#include "hf/family.h"
#include "hf/json_file.h"
#include "hf/key_writer.h"

namespace pagoda::hf {

// `head_dim` is the size of a head, of which partial_rotary_factor rotates.
Status write_rope_keys(const JsonFields& config, const Family& family, std::uint64_t head_dim,
                       const KeyWriter& keys);

}  // namespace pagoda::hf
