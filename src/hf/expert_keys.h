// How many experts there are, and how many a token uses.
#pragma once

#include "base/result.h"
#include "hf/json_file.h"
#include "hf/key_writer.h"

namespace pagoda::hf {

// `count_field` is published; transformers writes the number of experts under another name.
Status write_experts(const JsonFields& config, const KeyWriter& keys, const char* count_field);

}  // namespace pagoda::hf
