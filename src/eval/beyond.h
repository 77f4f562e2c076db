// Perplexity by position of a text that goes on past the context, as KV policies let it.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "terminal/bench_report.h"

namespace pagoda::eval {

inline constexpr std::size_t kBeyondPart = 1024;  // tokens whose perplexity is one figure

struct BeyondRow {
  std::string configuration;
  std::vector<double> perplexity;  // [part]: of tokens from part * kBeyondPart on
};

// `logprobs` are those of a text's tokens from the second on. A part that has fewer than half of
// its tokens is left out.
std::vector<double> perplexity_by_position(std::span<const float> logprobs);

// Settings are the caller's to add. A configuration that ended at the context has no figure behind
// it.
terminal::BenchReport make_beyond_report(const std::vector<BeyondRow>& rows);

// The same as an SVG file.
std::string beyond_svg(const std::vector<BeyondRow>& rows);

}  // namespace pagoda::eval
