// The element types of cached keys and values, by name.
#pragma once

#include <string_view>

#include "kv/memory/page_layout.h"

namespace pagoda::app {

// "fp32", "fp16", "bf16", "fp8"
std::string_view kv_element_name(kv::memory::Element element);

}  // namespace pagoda::app
