// The scalar values of a shape: as grammars, and the values of an enum that fit the other keywords.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "structured/grammar_tree.h"
#include "structured/json_nodes.h"
#include "structured/schema_graph.h"

namespace pagoda::structured {

// Returns one node for each of the shape's types that is neither object nor array.
Result<std::vector<GrammarNodeId>> scalar_nodes(GrammarTree& tree, JsonNodes& json,
                                                const SchemaShape& shape, const SchemaGraph& graph);

// Returns a node for the strings of the shape as text without quotes; nothing where any text will
// do.
Result<std::optional<GrammarNodeId>> plain_text_node(GrammarTree& tree, const SchemaShape& shape,
                                                     SchemaGraph& graph);

// Returns the text of a value that is neither object nor array.
std::string scalar_text(const SchemaJson& value, const JsonNodes& json);

// Returns those of shape.values that fit the shape's other keywords. An error where that cannot be
// told: for an object or array beside keywords about objects or arrays. The graph counts the steps.
Result<std::vector<const SchemaJson*>> allowed_values(const SchemaShape& shape, SchemaGraph& graph);

}  // namespace pagoda::structured
