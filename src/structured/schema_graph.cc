#include "structured/schema_graph.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <set>

namespace pagoda::structured {
namespace {

// "%24defs" is "$defs": references are URIs.
Result<std::string> percent_decoded(std::string_view text, const std::string& path) {
  std::string decoded;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      decoded += text[i];
      continue;
    }
    unsigned byte = 0;
    const char* const first = text.data() + i + 1;
    if (i + 2 >= text.size() || std::from_chars(first, first + 2, byte, 16).ptr != first + 2) {
      return schema_error(path, "a % without two hexadecimal digits");
    }
    decoded += static_cast<char>(byte);
    i += 2;
  }
  return decoded;
}

const SchemaJson* child_of(const SchemaJson& value, const std::string& name) {
  if (value.is_object()) {
    const auto found = value.find(name);
    return found == value.end() ? nullptr : &*found;
  }
  std::size_t index = 0;
  const char* const end = name.data() + name.size();
  if (!value.is_array() || std::from_chars(name.data(), end, index).ptr != end) return nullptr;
  return index < value.size() ? &value[index] : nullptr;
}

std::string unescaped_token(std::string_view token) {
  std::string name;
  for (std::size_t i = 0; i < token.size(); ++i) {
    if (token[i] == '~' && i + 1 < token.size() && (token[i + 1] == '0' || token[i + 1] == '1')) {
      name += token[++i] == '0' ? '~' : '/';
    } else {
      name += token[i];
    }
  }
  return name;
}

}  // namespace

bool SchemaShape::requires_member(const std::string& name) const {
  return std::binary_search(required.begin(), required.end(), name);
}

bool SchemaShape::names_member(const std::string& name) const {
  return std::binary_search(sorted_names.begin(), sorted_names.end(), name);
}

SchemaGraph::SchemaGraph(const SchemaJson& root) : root_(root) { paths_[&root] = ""; }

Status SchemaGraph::count_steps(const std::string& path, std::uint64_t steps) {
  steps_ += steps;
  if (steps_ <= kSchemaStepsMax) return ok_status();
  return schema_error(
      path, fmt::format("the schema is too large: it takes more than {} steps", kSchemaStepsMax));
}

void SchemaGraph::name_path(const SchemaJson* schema, std::string path) {
  paths_.try_emplace(schema, std::move(path));
}

Result<const SchemaGraph::Entry*> SchemaGraph::entry_of(const SchemaJson* schema) {
  const auto found = entries_.find(schema);
  if (found != entries_.end()) return &found->second;
  Entry entry;
  entry.path = paths_[schema];
  ASSIGN_OR_RETURN(entry.facts, read_schema_facts(*schema, entry.path));
  if (entry.facts.properties != nullptr) {
    for (const auto& [name, property] : entry.facts.properties->items()) {
      entry.properties.emplace(name, &property);
      name_path(&property, pointer_to(entry.path + "/properties", name));
    }
  }
  return &entries_.emplace(schema, std::move(entry)).first->second;
}

Result<const SchemaJson*> SchemaGraph::resolve(const std::string& ref, const std::string& path) {
  const std::string at = path + "/$ref";
  if (!ref.starts_with('#')) {
    return schema_error(at, "references within the schema (\"#/$defs/…\") are supported only");
  }
  ASSIGN_OR_RETURN(const std::string pointer, percent_decoded(ref.substr(1), at));
  if (!pointer.empty() && pointer[0] != '/') {
    return schema_error(at, "anchors are not supported; expected a JSON pointer");
  }
  const SchemaJson* target = &root_;
  for (std::size_t begin = 0; begin < pointer.size();) {
    const std::size_t end = std::min(pointer.find('/', begin + 1), pointer.size());
    target = child_of(
        *target, unescaped_token(std::string_view(pointer).substr(begin + 1, end - begin - 1)));
    if (target == nullptr) return schema_error(at, fmt::format("\"{}\" is not there", ref));
    begin = end;
  }
  name_path(target, pointer);
  return target;
}

// A part that is there already stays as it is: its decisions hold.
Status SchemaGraph::add_part(const SchemaPart& part, PartList& list) {
  RETURN_IF_ERROR(count_steps(paths_[part.schema]));
  if (list.index.emplace(part.schema, list.parts.size()).second) list.parts.push_back(part);
  return ok_status();
}

// A schema that is reached from itself, with no value in between, never ends.
Status SchemaGraph::add_reached(const SchemaJson* schema, const SchemaPart& from, PartList& list) {
  const SchemaJson* at = from.schema;
  while (at != nullptr) {
    RETURN_IF_ERROR(count_steps(paths_[schema]));
    if (at == schema) {
      return schema_error(paths_[from.schema], "the schema refers to itself and never ends");
    }
    const auto found = list.index.find(at);
    at = found == list.index.end() ? nullptr : list.parts[found->second].reached_from;
  }
  return add_part({schema, 0, from.schema}, list);
}

Result<SchemaGraph::Expanded> SchemaGraph::expand(const Conjunction& conjunction) {
  PartList list;
  for (const SchemaPart& part : conjunction) RETURN_IF_ERROR(add_part(part, list));
  Expanded expanded;
  for (std::size_t i = 0; i < list.parts.size(); ++i) {
    const SchemaPart part = list.parts[i];
    ASSIGN_OR_RETURN(const Entry* const entry, entry_of(part.schema));
    const SchemaFacts& facts = entry->facts;
    if (i == 0) expanded.shape.path = entry->path;
    if (facts.ref != nullptr) {
      ASSIGN_OR_RETURN(const SchemaJson* const target, resolve(*facts.ref, entry->path));
      RETURN_IF_ERROR(add_reached(target, part, list));
    }
    for (std::size_t k = 0; facts.all_of != nullptr && k < facts.all_of->size(); ++k) {
      const SchemaJson* const branch = &(*facts.all_of)[k];
      name_path(branch, pointer_to(entry->path + "/allOf", k));
      RETURN_IF_ERROR(add_reached(branch, part, list));
    }
    if (expanded.choice) continue;
    if (facts.any_of != nullptr && (part.decided & kAnyOfDecided) == 0) {
      expanded.choice = {part.schema, part.reached_from, facts.any_of, kAnyOfDecided,
                         entry->path + "/anyOf"};
    } else if (facts.one_of != nullptr && (part.decided & kOneOfDecided) == 0) {
      expanded.choice = {part.schema, part.reached_from, facts.one_of, kOneOfDecided,
                         entry->path + "/oneOf"};
    }
  }
  if (expanded.choice) return expanded;
  for (const SchemaPart& part : list.parts) {
    ASSIGN_OR_RETURN(const Entry* const entry, entry_of(part.schema));
    RETURN_IF_ERROR(merge(*entry, part.schema, expanded.shape));
  }
  finish_names(expanded.shape);
  return expanded;
}

Conjunction SchemaGraph::decide(const Conjunction& conjunction, const SchemaChoice& choice,
                                std::size_t index) {
  Conjunction decided = conjunction;
  const SchemaJson* const branch = &(*choice.branches)[index];
  name_path(branch, pointer_to(choice.path, index));
  const auto owner = std::find_if(decided.begin(), decided.end(), [&](const SchemaPart& part) {
    return part.schema == choice.owner;
  });
  if (owner != decided.end()) {
    owner->decided |= choice.flag;
  } else {
    decided.push_back({choice.owner, choice.flag, choice.reached_from});
  }
  decided.push_back({branch, 0, choice.owner});
  return decided;
}

void SchemaGraph::merge_values(const Entry& entry, SchemaShape& shape) {
  if (!entry.facts.values) return;
  if (!shape.values) {
    shape.values = entry.facts.values;
    return;
  }
  std::set<std::string> both;
  for (const SchemaJson* value : *entry.facts.values) both.insert(value->dump());
  std::erase_if(*shape.values,
                [&](const SchemaJson* value) { return !both.contains(value->dump()); });
}

Status SchemaGraph::merge_strings(const Entry& entry, SchemaShape& shape) {
  const auto add = [&](const std::string* text, bool is_format) {
    if (text == nullptr) return;
    const bool is_there = std::any_of(
        shape.strings.begin(), shape.strings.end(),
        [&](const StringRule& rule) { return rule.is_format == is_format && *rule.text == *text; });
    if (is_there) return;
    shape.strings.push_back({text, is_format, entry.path + (is_format ? "/format" : "/pattern")});
  };
  add(entry.facts.pattern, false);
  add(entry.facts.format, true);
  if (shape.strings.size() <= 1) return ok_status();
  return schema_error(shape.strings.back().path,
                      "two patterns or formats for one string are not supported");
}

Status SchemaGraph::merge(const Entry& entry, const SchemaJson* schema, SchemaShape& shape) {
  const SchemaFacts& facts = entry.facts;
  RETURN_IF_ERROR(count_steps(entry.path, entry.properties.size() + facts.required.size() +
                                              (facts.values ? facts.values->size() : 0)));
  shape.schemas.push_back(schema);
  shape.is_never = shape.is_never || facts.is_never;
  shape.types &= facts.types;
  merge_values(entry, shape);
  RETURN_IF_ERROR(merge_strings(entry, shape));
  shape.length_least = std::max(shape.length_least, facts.length_least);
  shape.length_most = std::min(shape.length_most, facts.length_most);
  shape.items_least = std::max(shape.items_least, facts.items_least);
  shape.items_most = std::min(shape.items_most, facts.items_most);
  if (facts.numbers.low) narrow_low(shape.numbers.low, *facts.numbers.low);
  if (facts.numbers.high) narrow_high(shape.numbers.high, *facts.numbers.high);
  if (facts.numbers.multiple_of) {
    const auto& known = shape.numbers.multiple_of;
    if (known && compare(*known, *facts.numbers.multiple_of) != 0) {
      return schema_error(entry.path + "/multipleOf", "two of them are not supported");
    }
    shape.numbers.multiple_of = facts.numbers.multiple_of;
  }
  if (facts.properties != nullptr) {
    for (const auto& [name, property] : facts.properties->items()) shape.names.push_back(name);
  }
  shape.required.insert(shape.required.end(), facts.required.begin(), facts.required.end());
  shape.has_additional = shape.has_additional || facts.additional != nullptr;
  shape.has_items = shape.has_items || facts.items != nullptr;
  shape.has_prefix = shape.has_prefix || facts.prefix_items != nullptr;
  if (facts.prefix_items != nullptr) {
    shape.prefix_items = std::max(shape.prefix_items, facts.prefix_items->size());
  }
  return ok_status();
}

// Each name once, where it comes first; required members that no schema describes come last.
void SchemaGraph::finish_names(SchemaShape& shape) {
  shape.names.insert(shape.names.end(), shape.required.begin(), shape.required.end());
  std::set<std::string_view> seen;
  std::vector<std::string> names;
  for (const std::string& name : shape.names) {
    if (seen.insert(name).second) names.push_back(name);
  }
  shape.names = std::move(names);
  std::sort(shape.required.begin(), shape.required.end());
  shape.sorted_names = shape.names;
  std::sort(shape.sorted_names.begin(), shape.sorted_names.end());
}

Result<Conjunction> SchemaGraph::member(const SchemaShape& shape, const std::string& name) {
  Conjunction parts;
  for (const SchemaJson* schema : shape.schemas) {
    RETURN_IF_ERROR(count_steps(shape.path));
    ASSIGN_OR_RETURN(const Entry* const entry, entry_of(schema));
    const auto property = entry->properties.find(name);
    if (property != entry->properties.end()) {
      parts.push_back({property->second});
    } else if (entry->facts.additional != nullptr) {
      name_path(entry->facts.additional, entry->path + "/additionalProperties");
      parts.push_back({entry->facts.additional});
    }
  }
  return parts;
}

Result<Conjunction> SchemaGraph::additional(const SchemaShape& shape) {
  Conjunction parts;
  for (const SchemaJson* schema : shape.schemas) {
    ASSIGN_OR_RETURN(const Entry* const entry, entry_of(schema));
    if (entry->facts.additional == nullptr) continue;
    name_path(entry->facts.additional, entry->path + "/additionalProperties");
    parts.push_back({entry->facts.additional});
  }
  return parts;
}

Result<Conjunction> SchemaGraph::element(const SchemaShape& shape, std::size_t index) {
  Conjunction parts;
  for (const SchemaJson* schema : shape.schemas) {
    RETURN_IF_ERROR(count_steps(shape.path));
    ASSIGN_OR_RETURN(const Entry* const entry, entry_of(schema));
    const SchemaFacts& facts = entry->facts;
    if (facts.prefix_items != nullptr && index < facts.prefix_items->size()) {
      name_path(&(*facts.prefix_items)[index], pointer_to(entry->path + "/prefixItems", index));
      parts.push_back({&(*facts.prefix_items)[index]});
    } else if (facts.items != nullptr) {
      name_path(facts.items, entry->path + "/items");
      parts.push_back({facts.items});
    }
  }
  return parts;
}

Result<Conjunction> SchemaGraph::rest(const SchemaShape& shape) {
  return element(shape, kUnbounded);
}

}  // namespace pagoda::structured
