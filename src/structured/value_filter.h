// The scalar values of a shape: as grammars, and the values of an enum that fit the other keywords.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "base/result.h"
#include "structured/grammar_tree.h"
#include "structured/json_nodes.h"
#include "structured/pattern_reader.h"
#include "structured/schema_graph.h"

namespace pagoda::structured {

// Patterns and formats that were read into a tree, each once: many schemas may share one by $ref.
class PatternCache {
 public:
  explicit PatternCache(GrammarTree& tree) : tree_(tree) {}

  GrammarTree& tree() { return tree_; }
  // read_pattern() of a schema's pattern or format. The graph counts the steps.
  Result<Pattern> read(const StringRule& rule, CharacterForm form, const CodePointSet& left_out,
                       SchemaGraph& graph, bool measured = false);

 private:
  // …, leaves out some, measured
  using Key = std::tuple<const std::string*, bool, CharacterForm, bool, bool>;

  GrammarTree& tree_;
  std::map<Key, Pattern> known_;
};

// Returns one node for each of the shape's types that is neither object nor array.
Result<std::vector<GrammarNodeId>> scalar_nodes(PatternCache& patterns, JsonNodes& json,
                                                const SchemaShape& shape, SchemaGraph& graph);

// Returns a node for the strings of the shape as text without quotes; nothing where any text will
// do. Behind the text comes `end`, which is in none of the texts: an error where one must have it.
Result<std::optional<GrammarNodeId>> plain_text_node(PatternCache& patterns,
                                                     const SchemaShape& shape, std::string_view end,
                                                     SchemaGraph& graph);

// Returns the text of a value that is neither object nor array.
std::string scalar_text(const SchemaJson& value, const JsonNodes& json);

// Returns those of shape.values that fit the shape's other keywords. An error where that cannot be
// told: for an object or array beside keywords about objects or arrays. The graph counts the steps.
Result<std::vector<const SchemaJson*>> allowed_values(const SchemaShape& shape, SchemaGraph& graph);

}  // namespace pagoda::structured
