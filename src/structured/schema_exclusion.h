// Whether two schemas of a oneOf can hold of one value. The answer errs on the side of "they can":
// then the oneOf is refused.
#pragma once

#include "base/result.h"
#include "structured/schema_graph.h"

namespace pagoda::structured {

// Returns whether no document that is written for `written` fits `other`: by their types,
// constants, bounds, or a member that is required of one and impossible or different in the other.
Result<bool> excludes(SchemaGraph& graph, const Conjunction& written, const Conjunction& other);

}  // namespace pagoda::structured
