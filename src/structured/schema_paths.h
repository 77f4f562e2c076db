// SchemaPaths knows where each schema of a document is, as a link to the schema around it: JSON
// pointers, which may be long, are written for errors alone.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "structured/schema_facts.h"

namespace pagoda::structured {

class SchemaPaths {
 public:
  // Notes where `schema` is, unless that is known: at `keyword` of `parent`, there under a name or
  // an index. Names are of the document, which outlives the paths.
  void note(const SchemaJson* schema, const SchemaJson* parent, std::string_view keyword);
  void note(const SchemaJson* schema, const SchemaJson* parent, std::string_view keyword,
            std::string_view name);
  void note(const SchemaJson* schema, const SchemaJson* parent, std::string_view keyword,
            std::size_t index);
  // Notes a schema that was found by a reference "#/…".
  void note_target(const SchemaJson* schema, std::string_view ref);

  // Returns the JSON pointer of a schema, or of a keyword in it.
  std::string pointer(const SchemaJson* schema) const;
  std::string pointer(const SchemaJson* schema, std::string_view keyword) const;
  // Returns the end of the pointer, "…/items/properties/a"; "#" for the whole document. Takes time
  // in the order of its length.
  std::string short_pointer(const SchemaJson* schema) const;

 private:
  struct Place {
    const SchemaJson* parent = nullptr;
    std::string_view keyword = {};
    std::optional<std::string_view> name = {};
    std::optional<std::size_t> index = {};
    std::string_view ref = {};  // not empty: all of the pointer, behind its '#'
  };

  std::map<const SchemaJson*, Place> places_;
};

}  // namespace pagoda::structured
