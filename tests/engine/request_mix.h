// Requests that differ in everything a request can ask for, and a comparison of their outputs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "engine/engine_fixture.h"

namespace pagoda::engine {

// Draws requests that share prefixes, sample in every way, fork, ask for log-probabilities, and
// answer under a grammar.
std::vector<Request> draw_requests(const model::Config& config, std::size_t count,
                                   std::uint32_t shared_tokens, std::uint32_t new_tokens);

// Expects the same tokens, scores to the last bit, and reasons.
void expect_same(const std::vector<std::shared_ptr<TestSink>>& got,
                 const std::vector<std::shared_ptr<TestSink>>& alone);

}  // namespace pagoda::engine
