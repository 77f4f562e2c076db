// What tutorials print of a KV cache: its shape, and that it changes nothing.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "base/result.h"
#include "base/token_id.h"
#include "model/decoder.h"
#include "terminal/bench_report.h"

namespace pagoda::bench {

// Returns the largest absolute difference of values at the same place in two lists of one length.
double largest_difference(std::span<const float> a, std::span<const float> b);

// Returns the largest difference between the logits of the last token when it is computed together
// with all before it, and alone behind their rows of KV. There are at least two tokens.
Result<double> logit_difference(model::Decoder& decoder, std::span<const TokenId> tokens);

// Adds both to a report; `what` names the values that were compared.
void add_cache_figures(terminal::BenchReport& report, const std::string& shape, double difference,
                       std::string_view what);

}  // namespace pagoda::bench
