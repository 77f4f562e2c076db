// SchemaGraph reads the schemas of one document as they are needed, and joins those that hold of
// one value together: a schema, what it refers to, and the members of its allOf.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "structured/schema_facts.h"
#include "structured/schema_paths.h"
#include "structured/schema_values.h"

namespace pagoda::structured {

// A schema of a conjunction. Flags say which of its disjunctions is decided: the branch that was
// taken is another part.
struct SchemaPart {
  const SchemaJson* schema = nullptr;
  std::uint8_t decided = 0;
  // The schema through which this one was reached; no part of its identity.
  const SchemaJson* reached_from = nullptr;

  friend bool operator<(const SchemaPart& a, const SchemaPart& b) {
    return std::pair(a.schema, a.decided) < std::pair(b.schema, b.decided);
  }
};

inline constexpr std::uint8_t kAnyOfDecided = 1;
inline constexpr std::uint8_t kOneOfDecided = 2;

// Schemas that hold of one value together. Empty: any value.
using Conjunction = std::vector<SchemaPart>;

// A pattern or format, and the schema that has it.
struct StringRule {
  const std::string* text = nullptr;
  bool is_format = false;
  const SchemaJson* owner = nullptr;
};

// SchemaShape is a conjunction without disjunctions: everything that a value must be.
struct SchemaShape {
  bool is_never = false;
  std::uint8_t types = kAllTypes;
  std::optional<ValueList> values = {};
  std::uint32_t length_least = 0;
  std::uint32_t length_most = kUnbounded;
  std::uint32_t items_least = 0;
  std::uint32_t items_most = kUnbounded;
  NumberBounds numbers = {};
  std::vector<StringRule> strings = {};
  // Names are of the document: there may be many shapes at a time, and names may be long.
  std::vector<std::string_view> names = {};     // properties in their order, then required members
  std::vector<std::string_view> required = {};  // ascending
  std::vector<std::string_view> sorted_names = {};  // the names, ascending
  std::size_t prefix_items = 0;                     // the longest prefix
  bool has_items = false;                           // some schema has items
  bool has_prefix = false;
  bool has_additional = false;                  // some schema has additionalProperties
  bool has_properties = false;                  // some schema has properties, perhaps none
  std::vector<const SchemaJson*> schemas = {};  // at least one

  bool requires_member(std::string_view name) const;
  bool names_member(std::string_view name) const;
  // Whether members that are not named may be there: as additionalProperties says, and without it
  // where no schema speaks of members at all.
  bool is_open() const { return has_additional || (names.empty() && !has_properties); }
};

// A disjunction that is not decided.
struct SchemaChoice {
  const SchemaJson* owner = nullptr;
  const SchemaJson* reached_from = nullptr;  // of the owner
  const SchemaJson* branches = nullptr;
  std::uint8_t flag = 0;
};

inline constexpr std::uint64_t kSchemaStepsMax = 500'000;

class SchemaGraph {
 public:
  // `steps` counts for all schemas of a grammar together, and outlives the graph.
  SchemaGraph(const SchemaJson& root, std::uint64_t& steps);

  struct Expanded {
    std::optional<SchemaChoice> choice;  // where there is one, the shape is not filled
    SchemaShape shape;
  };
  // Follows references and allOf.
  Result<Expanded> expand(const Conjunction& conjunction);
  // Returns the conjunction in which branch `index` of the choice is taken.
  Conjunction decide(const Conjunction& conjunction, const SchemaChoice& choice, std::size_t index);

  // Returns every shape that a value of the conjunction may have.
  Result<std::vector<SchemaShape>> list_shapes(const Conjunction& root);

  // The schemas of a member or an element of a value of this shape.
  Result<Conjunction> member(const SchemaShape& shape, std::string_view name);
  Result<Conjunction> additional(const SchemaShape& shape);
  Result<Conjunction> element(const SchemaShape& shape, std::size_t index);
  Result<Conjunction> rest(const SchemaShape& shape);

  // Counts steps for a schema; an error that names it when there are too many.
  Status count_steps(const SchemaJson* schema, std::uint64_t steps = 1);
  // Where the schema is, in a few bytes.
  std::string short_place(const SchemaJson* schema) const { return paths_.short_pointer(schema); }
  // An error that names the schema.
  Error error_at(const SchemaJson* schema, std::string_view what) const;
  Error error_at(const SchemaJson* schema, std::string_view keyword, std::string_view what) const;

 private:
  struct Entry {
    SchemaFacts facts;
    std::optional<ValueList> values;     // of enum and const
    const SchemaJson* target = nullptr;  // of $ref
    std::map<std::string_view, const SchemaJson*> properties;
  };

  // Parts in the order of their discovery, and where each schema is among them.
  struct PartList {
    std::vector<SchemaPart> parts;
    std::map<const SchemaJson*, std::size_t> index;
  };

  Result<const Entry*> entry_of(const SchemaJson* schema);
  Result<const SchemaJson*> resolve(const std::string& ref, const SchemaJson* schema);
  const SchemaJson* child_of(const SchemaJson& value, const std::string& name);
  Status add_part(const SchemaPart& part, PartList& parts);
  Status add_reached(const SchemaJson* schema, const SchemaPart& from, PartList& parts);
  Status merge(const Entry& entry, const SchemaJson* schema, SchemaShape& shape);
  Status merge_strings(const Entry& entry, const SchemaJson* schema, SchemaShape& shape);
  void finish_names(SchemaShape& shape);

  const SchemaJson& root_;
  SchemaPaths paths_;
  SchemaValues values_;
  // The members of the objects that references go through.
  std::map<const SchemaJson*, std::map<std::string_view, const SchemaJson*>> members_;
  std::map<const SchemaJson*, Entry> entries_;
  std::uint64_t& steps_;
};

}  // namespace pagoda::structured
