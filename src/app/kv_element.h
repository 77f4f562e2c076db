// --kv-cache-dtype: the element type of cached keys and values, as every command takes it.
#pragma once

#include <CLI/CLI.hpp>
#include <optional>
#include <string_view>

#include "kv/memory/page_layout.h"

namespace pagoda::app {

// "auto", the default, is the default for this CPU: unset.
// May be given twice (-ctk and -ctv are aliases of it) if both name the same.
void add_kv_element_option(CLI::App& command, std::optional<kv::memory::Element>& element);

// "fp32", "fp16", "bf16", "fp8"
std::string_view kv_element_name(kv::memory::Element element);

}  // namespace pagoda::app
