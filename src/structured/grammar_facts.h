// Facts about the nodes of a grammar, over recursive rules: which can match at all, which can match
// the empty text, and whether a rule comes back to itself before it has read a byte.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "structured/grammar_tree.h"

namespace pagoda::structured {

struct GrammarFacts {
  std::vector<std::uint8_t> productive;  // [node]: some finite text matches
  std::vector<std::uint8_t> nullable;    // [node]: the empty text matches
  // A rule that is left-recursive: no byte is read between two entries.
  std::optional<RuleId> left_recursive;
};

// Takes time linear in the tree.
GrammarFacts find_facts(const GrammarTree& tree);

}  // namespace pagoda::structured
