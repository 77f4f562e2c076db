// The lengths that texts of a grammar's node have, in characters (GrammarTree::character()).
#pragma once

#include <cstdint>
#include <optional>

#include "structured/grammar_tree.h"

namespace pagoda::structured {

// Whether a text of `node`, which has no rules, has `least` to `most` characters; `most` is not
// kUnbounded. Nothing where that takes more than `work_max` steps; adds the steps to `work`.
std::optional<bool> has_length(const GrammarTree& tree, GrammarNodeId node, std::uint32_t least,
                               std::uint32_t most, std::uint64_t work_max, std::uint64_t& work);

}  // namespace pagoda::structured
