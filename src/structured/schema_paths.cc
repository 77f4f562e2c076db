#include "structured/schema_paths.h"

#include <vector>

namespace pagoda::structured {

void SchemaPaths::note(const SchemaJson* schema, const SchemaJson* parent,
                       std::string_view keyword) {
  places_.try_emplace(schema, Place{.parent = parent, .keyword = keyword});
}

void SchemaPaths::note(const SchemaJson* schema, const SchemaJson* parent, std::string_view keyword,
                       std::string_view name) {
  places_.try_emplace(schema, Place{.parent = parent, .keyword = keyword, .name = name});
}

void SchemaPaths::note(const SchemaJson* schema, const SchemaJson* parent, std::string_view keyword,
                       std::size_t index) {
  places_.try_emplace(schema, Place{.parent = parent, .keyword = keyword, .index = index});
}

void SchemaPaths::note_target(const SchemaJson* schema, std::string_view ref) {
  places_.try_emplace(schema, Place{.ref = ref});
}

std::string SchemaPaths::pointer(const SchemaJson* schema) const {
  std::vector<const Place*> around;  // from the schema outwards
  while (true) {
    const auto found = places_.find(schema);
    if (found == places_.end()) break;
    around.push_back(&found->second);
    schema = found->second.parent;
  }
  std::string path;
  for (auto at = around.rbegin(); at != around.rend(); ++at) {
    const Place& place = **at;
    if (!place.ref.empty()) {
      path = place.ref.substr(1);
      continue;
    }
    path = pointer_to(std::move(path), place.keyword);
    if (place.name) path = pointer_to(std::move(path), *place.name);
    if (place.index) path = pointer_to(std::move(path), *place.index);
  }
  return path;
}

std::string SchemaPaths::pointer(const SchemaJson* schema, std::string_view keyword) const {
  return pointer_to(pointer(schema), keyword);
}

std::string SchemaPaths::short_pointer(const SchemaJson* schema) const {
  constexpr std::size_t kBytesMax = 100;
  std::string path;
  while (path.size() < kBytesMax) {
    const auto found = places_.find(schema);
    if (found == places_.end()) return path.empty() ? "#" : path;
    const Place& place = found->second;
    const std::string_view name = place.ref.empty() ? place.name.value_or("") : place.ref.substr(1);
    if (name.size() > kBytesMax) break;
    if (!place.ref.empty()) return std::string(name) + path;
    std::string part = pointer_to("", place.keyword);
    if (place.name) part = pointer_to(std::move(part), name);
    if (place.index) part = pointer_to(std::move(part), *place.index);
    path = part + path;
    schema = place.parent;
  }
  return "…" + path;
}

}  // namespace pagoda::structured
