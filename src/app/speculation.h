// Speculation as users configure it: vLLM's JSON, and what llama.cpp's flags mean here.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "speculate/options.h"

namespace pagoda::app {

// Returns what is drafted where nobody says otherwise, on devices that verify drafts.
speculate::SpeculationOptions default_speculation();

// Reads `speculative_config`: JSON with vLLM's keys, in which `method` may also be a list, or the
// names alone, with commas. "none" switches speculation off. The error names the key or the method
// that is unknown or not supported, and those that are.
Result<speculate::SpeculationOptions> parse_speculation(std::string_view text);

// Reads `spec_type`, the methods that llama.cpp has, with commas.
Result<speculate::SpeculationOptions> parse_llama_speculation(std::string_view text);

// Names the methods for people: "tree, suffix", or "off".
std::string speculation_name(const speculate::SpeculationOptions& options);

}  // namespace pagoda::app
