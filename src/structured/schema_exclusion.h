// Whether two schemas of a oneOf can hold of one value. The answer errs on the side of "they can":
// then the oneOf is refused.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "base/result.h"
#include "structured/schema_graph.h"

namespace pagoda::structured {

// Two alternatives that may both hold, by their numbers.
struct OverlappingPair {
  std::size_t first = 0;
  std::size_t second = 0;
};

// Alternatives exclude each other if no document that is written for one fits another: by their
// types, constants, bounds, or a member that is required of one and impossible or different in the
// other. Returns the first pair of which that is not seen; nothing: each excludes all others.
Result<std::optional<OverlappingPair>> find_overlap(SchemaGraph& graph,
                                                    const std::vector<Conjunction>& alternatives);

}  // namespace pagoda::structured
