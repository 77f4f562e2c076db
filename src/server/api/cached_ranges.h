// Which tokens of a prompt had their rows of KV from where, and how many tiers gave.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "engine/reply.h"
#include "server/json.h"

namespace pagoda::server {

// Lists ranges of tokens that were not computed, in order: {"first", "tokens", "tier"}, where the
// tier is "memory" or one of `tiers`. The first `cached` tokens of the prompt were in memory when
// it began, those that a tier had given before that included.
Json cached_ranges_json(std::uint64_t prompt_tokens, std::uint64_t cached,
                        const engine::LoadRecord& load, std::span<const std::string> tiers);
// How many of the first `matched` tokens each kind gave: {"memory": 9, "tier": 0}, of the ranges of
// cached_ranges_json().
Json matched_by_tier_json(const Json& ranges, std::uint64_t matched);
// Counts the tokens that each of `tiers` gave, by its name.
Json loaded_by_tier_json(const engine::LoadRecord& load, std::span<const std::string> tiers);

}  // namespace pagoda::server
