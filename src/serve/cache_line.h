// Sums up, at the end of the log, what the cache did since the start.
#pragma once

#include <string>

#include "engine/snapshot.h"
#include "kv/curve.h"

namespace pagoda::serve {

// The share of prompt tokens that the cache had, those loaded from tiers among them, and what half
// and twice the memory would have given under the policy that ran. Empty before the first prompt.
std::string cache_line(const engine::Snapshot& now, const kv::CurveStats& curve);

}  // namespace pagoda::serve
