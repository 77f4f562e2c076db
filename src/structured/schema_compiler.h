// Compiles a JSON schema to a grammar of the documents that a model may write for it.
//
// Every document of the grammar is valid; not every valid document is in it. It has one order of
// members (that of `properties`), bounded white space, and no members or elements that the schema
// does not speak of: an object with `properties` is closed unless `additionalProperties` is there,
// and so is an array with `prefixItems` unless `items` is.
#pragma once

#include "base/result.h"
#include "structured/grammar_tree.h"
#include "structured/schema_facts.h"

namespace pagoda::structured {

// An error begins with the JSON pointer of the keyword that is refused; "#" is the whole schema.
Result<GrammarNodeId> compile_schema(const SchemaJson& schema, GrammarTree& tree);

}  // namespace pagoda::structured
