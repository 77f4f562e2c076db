// How long the tokens that stores have of a prompt take to come, by measured speeds.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "engine/tiers/load_record.h"
#include "engine/tiers/page_reads.h"
#include "engine/tiers/tier_options.h"

namespace pagoda::engine {

struct ComputeSpeed {
  std::optional<double> tokens_per_second;  // of prompts; nothing: not measured yet
  LoadMode mode = LoadMode::kAuto;
};

// Returns the seconds of loading `tokens`, [store], whose pages are so many bytes, or of computing
// them where that is faster; nothing where no speed is known. A store that gave no page yet is
// taken to be no slower than the model.
std::optional<double> seconds_in_tiers(const std::array<std::uint64_t, kTiersMax>& tokens,
                                       double bytes, const PageReads& reads, ComputeSpeed model);

}  // namespace pagoda::engine
