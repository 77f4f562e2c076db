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

// A pattern or format, with its place.
struct StringRule {
  const std::string* text = nullptr;
  bool is_format = false;
  std::string path;
};

// SchemaShape is a conjunction without disjunctions: everything that a value must be.
struct SchemaShape {
  bool is_never = false;
  std::uint8_t types = kAllTypes;
  std::optional<std::vector<const SchemaJson*>> values = {};
  std::uint32_t length_least = 0;
  std::uint32_t length_most = kUnbounded;
  std::uint32_t items_least = 0;
  std::uint32_t items_most = kUnbounded;
  NumberBounds numbers = {};
  std::vector<StringRule> strings = {};
  std::vector<std::string> names = {};  // of properties, in their order, then of required members
  std::vector<std::string> required = {};      // ascending
  std::vector<std::string> sorted_names = {};  // the names, ascending
  std::size_t prefix_items = 0;                // the longest prefix
  bool has_items = false;                      // some schema has items
  bool has_prefix = false;
  bool has_additional = false;  // some schema has additionalProperties
  std::string path = {};        // of the first schema
  std::vector<const SchemaJson*> schemas = {};

  bool requires_member(const std::string& name) const;
  bool names_member(const std::string& name) const;
  // Whether members that are not named may be there: as additionalProperties says, and without it
  // where no member is named at all.
  bool is_open() const { return has_additional || names.empty(); }
};

// A disjunction that is not decided.
struct SchemaChoice {
  const SchemaJson* owner = nullptr;
  const SchemaJson* reached_from = nullptr;  // of the owner
  const SchemaJson* branches = nullptr;
  std::uint8_t flag = 0;
  std::string path;  // of the keyword
};

inline constexpr std::uint64_t kSchemaStepsMax = 500'000;

class SchemaGraph {
 public:
  explicit SchemaGraph(const SchemaJson& root);

  struct Expanded {
    std::optional<SchemaChoice> choice;  // where there is one, the shape is not filled
    SchemaShape shape;
  };
  // Follows references and allOf.
  Result<Expanded> expand(const Conjunction& conjunction);
  // Returns the conjunction in which branch `index` of the choice is taken.
  Conjunction decide(const Conjunction& conjunction, const SchemaChoice& choice, std::size_t index);

  // The schemas of a member or an element of a value of this shape.
  Result<Conjunction> member(const SchemaShape& shape, const std::string& name);
  Result<Conjunction> additional(const SchemaShape& shape);
  Result<Conjunction> element(const SchemaShape& shape, std::size_t index);
  Result<Conjunction> rest(const SchemaShape& shape);

  // Counts steps; an error that names the path when there are too many.
  Status count_steps(const std::string& path, std::uint64_t steps = 1);

 private:
  struct Entry {
    SchemaFacts facts;
    std::string path;
    std::map<std::string_view, const SchemaJson*> properties;
  };

  // Parts in the order of their discovery, and where each schema is among them.
  struct PartList {
    std::vector<SchemaPart> parts;
    std::map<const SchemaJson*, std::size_t> index;
  };

  Result<const Entry*> entry_of(const SchemaJson* schema);
  void name_path(const SchemaJson* schema, std::string path);
  Result<const SchemaJson*> resolve(const std::string& ref, const std::string& path);
  Status add_part(const SchemaPart& part, PartList& parts);
  Status add_reached(const SchemaJson* schema, const SchemaPart& from, PartList& parts);
  Status merge(const Entry& entry, const SchemaJson* schema, SchemaShape& shape);
  Status merge_strings(const Entry& entry, SchemaShape& shape);
  void merge_values(const Entry& entry, SchemaShape& shape);
  void finish_names(SchemaShape& shape);

  const SchemaJson& root_;
  std::map<const SchemaJson*, std::string> paths_;
  std::map<const SchemaJson*, Entry> entries_;
  std::uint64_t steps_ = 0;
};

}  // namespace pagoda::structured
