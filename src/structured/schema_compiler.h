// Compiles a JSON schema to a grammar of the documents that a model may write for it.
//
// Every document of the grammar is valid; not every valid document is in it. It has one order of
// members (that of `properties`), bounded white space, and no members or elements that the schema
// does not speak of: an object with `properties` is closed unless `additionalProperties` is there,
// and so is an array with `prefixItems` unless `items` is.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "structured/grammar_tree.h"
#include "structured/json_nodes.h"
#include "structured/schema_facts.h"

namespace pagoda::structured {

// The tree that all schemas of a grammar are compiled to has at most so many bytes.
inline constexpr std::uint64_t kTreeBytesMax = std::uint64_t{1} << 24;

// An error begins with the JSON pointer of the keyword that is refused; "#" is the whole schema.
// `steps` counts for all schemas of a grammar together.
Result<GrammarNodeId> compile_schema(const SchemaJson& schema, GrammarTree& tree,
                                     std::uint64_t& steps, const JsonStyle& style = {});

// A member of the object that a schema describes.
struct SchemaMember {
  std::string name;
  GrammarNodeId value = 0;  // JSON
  bool required = false;
  // The strings that the member may be, without quotes; nothing: any string is valid.
  std::optional<GrammarNodeId> text = {};
  bool may_be_null = false;
};

struct SchemaMembers {
  std::vector<SchemaMember> members = {};
  std::optional<GrammarNodeId> additional = {};  // the value of others; nothing: there are none
};

// Returns the members one by one, for forms of tool calls that are no JSON. The schema must
// describe one object. `value_end` is what stands behind strings without quotes, and within none of
// them: an error where one must have it. Empty: texts are not asked for.
Result<SchemaMembers> compile_members(const SchemaJson& schema, GrammarTree& tree,
                                      std::uint64_t& steps, std::string_view value_end);

}  // namespace pagoda::structured
