#include "structured/schema_graph.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <set>
#include <utility>

namespace pagoda::structured {
namespace {

// "%24defs" is "$defs": references are URIs.
std::optional<std::string> percent_decoded(std::string_view text) {
  std::string decoded;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      decoded += text[i];
      continue;
    }
    unsigned byte = 0;
    const char* const first = text.data() + i + 1;
    if (i + 2 >= text.size() || std::from_chars(first, first + 2, byte, 16).ptr != first + 2) {
      return std::nullopt;
    }
    decoded += static_cast<char>(byte);
    i += 2;
  }
  return decoded;
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

bool SchemaShape::requires_member(std::string_view name) const {
  return std::binary_search(required.begin(), required.end(), name);
}

bool SchemaShape::names_member(std::string_view name) const {
  return std::binary_search(sorted_names.begin(), sorted_names.end(), name);
}

SchemaGraph::SchemaGraph(const SchemaJson& root, std::uint64_t& steps)
    : root_(root), steps_(steps) {}

Status SchemaGraph::count_steps(const SchemaJson* schema, std::uint64_t steps) {
  steps_ += steps;
  if (steps_ <= kSchemaStepsMax) return ok_status();
  return error_at(
      schema, fmt::format("the schema is too large: it takes more than {} steps", kSchemaStepsMax));
}

Error SchemaGraph::error_at(const SchemaJson* schema, std::string_view what) const {
  return schema_error(paths_.pointer(schema), what);
}

Error SchemaGraph::error_at(const SchemaJson* schema, std::string_view keyword,
                            std::string_view what) const {
  return schema_error(paths_.pointer(schema, keyword), what);
}

Result<const SchemaGraph::Entry*> SchemaGraph::entry_of(const SchemaJson* schema) {
  const auto found = entries_.find(schema);
  if (found != entries_.end()) return &found->second;
  Entry entry;
  Result<SchemaFacts> facts = read_schema_facts(*schema, schema == &root_);
  if (!facts.ok()) {
    const std::string& message = facts.error().message;  // begins with a pointer, or with a colon
    const std::string path = paths_.pointer(schema);
    const bool is_root = path.empty() && message.starts_with(':');
    return Error{facts.error().code, (is_root ? "#" : path) + message};
  }
  entry.facts = std::move(facts).value();
  if (entry.facts.enumeration != nullptr) entry.values = values_.add_all(*entry.facts.enumeration);
  if (entry.facts.constant != nullptr) {
    const ValueList constant = {values_.add(*entry.facts.constant)};
    entry.values = entry.values ? values_of_both(constant, *entry.values) : constant;
  }
  if (entry.facts.ref != nullptr) {
    ASSIGN_OR_RETURN(entry.target, resolve(*entry.facts.ref, schema));
  }
  if (entry.facts.properties != nullptr) {
    for (auto at = entry.facts.properties->begin(); at != entry.facts.properties->end(); ++at) {
      entry.properties.emplace(at.key(), &*at);
      paths_.note(&*at, schema, "properties", at.key());
    }
  }
  return &entries_.emplace(schema, std::move(entry)).first->second;
}

// An object is indexed when the first reference goes through it: there may be many definitions, and
// many references to them.
const SchemaJson* SchemaGraph::child_of(const SchemaJson& value, const std::string& name) {
  if (value.is_object()) {
    const auto [known, is_new] = members_.try_emplace(&value);
    if (is_new) {
      for (auto at = value.begin(); at != value.end(); ++at) known->second.emplace(at.key(), &*at);
    }
    const auto found = known->second.find(name);
    return found == known->second.end() ? nullptr : found->second;
  }
  std::size_t index = 0;
  const char* const end = name.data() + name.size();
  if (!value.is_array() || std::from_chars(name.data(), end, index).ptr != end) return nullptr;
  return index < value.size() ? &value[index] : nullptr;
}

Result<const SchemaJson*> SchemaGraph::resolve(const std::string& ref, const SchemaJson* schema) {
  if (!ref.starts_with('#')) {
    return error_at(schema, "$ref",
                    "references within the schema (\"#/$defs/…\") are supported only");
  }
  const std::optional<std::string> decoded = percent_decoded(std::string_view(ref).substr(1));
  if (!decoded) return error_at(schema, "$ref", "a % without two hexadecimal digits");
  const std::string& pointer = *decoded;
  if (!pointer.empty() && pointer[0] != '/') {
    return error_at(schema, "$ref", "anchors are not supported; expected a JSON pointer");
  }
  const SchemaJson* target = &root_;
  for (std::size_t begin = 0; begin < pointer.size();) {
    const std::size_t end = std::min(pointer.find('/', begin + 1), pointer.size());
    target = child_of(
        *target, unescaped_token(std::string_view(pointer).substr(begin + 1, end - begin - 1)));
    if (target == nullptr) {
      return error_at(schema, "$ref", fmt::format("\"{}\" is not there", ref));
    }
    begin = end;
  }
  if (target != &root_) paths_.note_target(target, ref);
  return target;
}

// A part that is there already stays as it is: its decisions hold.
Status SchemaGraph::add_part(const SchemaPart& part, PartList& list) {
  RETURN_IF_ERROR(count_steps(part.schema));
  if (list.index.emplace(part.schema, list.parts.size()).second) list.parts.push_back(part);
  return ok_status();
}

// A schema that is reached from itself, with no value in between, never ends.
Status SchemaGraph::add_reached(const SchemaJson* schema, const SchemaPart& from, PartList& list) {
  const SchemaJson* at = from.schema;
  while (at != nullptr) {
    RETURN_IF_ERROR(count_steps(schema));
    if (at == schema) {
      return error_at(from.schema, "the schema refers to itself and never ends");
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
    if (entry->target != nullptr) RETURN_IF_ERROR(add_reached(entry->target, part, list));
    for (std::size_t k = 0; facts.all_of != nullptr && k < facts.all_of->size(); ++k) {
      const SchemaJson* const branch = &(*facts.all_of)[k];
      paths_.note(branch, part.schema, "allOf", k);
      RETURN_IF_ERROR(add_reached(branch, part, list));
    }
    if (expanded.choice) continue;
    if (facts.any_of != nullptr && (part.decided & kAnyOfDecided) == 0) {
      expanded.choice = {part.schema, part.reached_from, facts.any_of, kAnyOfDecided};
    } else if (facts.one_of != nullptr && (part.decided & kOneOfDecided) == 0) {
      expanded.choice = {part.schema, part.reached_from, facts.one_of, kOneOfDecided};
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
  paths_.note(branch, choice.owner, choice.flag == kAnyOfDecided ? "anyOf" : "oneOf", index);
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

// Depth first, with one open choice a level: their branches are made when they are looked at.
Result<std::vector<SchemaShape>> SchemaGraph::list_shapes(const Conjunction& root) {
  struct Level {
    Conjunction conjunction;
    SchemaChoice choice;
    std::size_t next = 0;  // branch
  };
  constexpr std::size_t kShapesMax = 4096;
  std::vector<SchemaShape> shapes;
  std::vector<Level> levels;
  std::optional<Conjunction> at = root;
  while (at) {
    ASSIGN_OR_RETURN(Expanded expanded, expand(*at));
    if (expanded.choice) {
      levels.push_back({*std::move(at), *expanded.choice});
    } else if (shapes.size() == kShapesMax) {
      return error_at(root.front().schema, "has too many alternatives");
    } else {
      shapes.push_back(std::move(expanded.shape));
    }
    at.reset();
    while (!levels.empty() && levels.back().next == levels.back().choice.branches->size()) {
      levels.pop_back();
    }
    if (levels.empty()) break;
    Level& level = levels.back();
    at = decide(level.conjunction, level.choice, level.next++);
  }
  return shapes;
}

Status SchemaGraph::merge_strings(const Entry& entry, const SchemaJson* schema,
                                  SchemaShape& shape) {
  const auto add = [&](const std::string* text, bool is_format) {
    if (text == nullptr) return;
    const bool is_there = std::any_of(
        shape.strings.begin(), shape.strings.end(),
        [&](const StringRule& rule) { return rule.is_format == is_format && *rule.text == *text; });
    if (is_there) return;
    shape.strings.push_back({text, is_format, schema});
  };
  add(entry.facts.pattern, false);
  add(entry.facts.format, true);
  if (shape.strings.size() <= 1) return ok_status();
  return error_at(schema, shape.strings.back().is_format ? "format" : "pattern",
                  "two patterns or formats for one string are not supported");
}

Status SchemaGraph::merge(const Entry& entry, const SchemaJson* schema, SchemaShape& shape) {
  const SchemaFacts& facts = entry.facts;
  const std::size_t values =
      (entry.values ? entry.values->size() : 0) + (shape.values ? shape.values->size() : 0);
  RETURN_IF_ERROR(count_steps(schema, entry.properties.size() + facts.required.size() + values));
  shape.schemas.push_back(schema);
  shape.is_never = shape.is_never || facts.is_never;
  shape.types &= facts.types;
  if (entry.values) {
    shape.values = shape.values ? values_of_both(*shape.values, *entry.values) : entry.values;
  }
  RETURN_IF_ERROR(merge_strings(entry, schema, shape));
  shape.length_least = std::max(shape.length_least, facts.length_least);
  shape.length_most = std::min(shape.length_most, facts.length_most);
  shape.items_least = std::max(shape.items_least, facts.items_least);
  shape.items_most = std::min(shape.items_most, facts.items_most);
  if (facts.numbers.low) narrow_low(shape.numbers.low, *facts.numbers.low);
  if (facts.numbers.high) narrow_high(shape.numbers.high, *facts.numbers.high);
  if (facts.numbers.multiple_of) {
    const auto& known = shape.numbers.multiple_of;
    if (known && compare(*known, *facts.numbers.multiple_of) != 0) {
      return error_at(schema, "multipleOf", "two of them are not supported");
    }
    shape.numbers.multiple_of = facts.numbers.multiple_of;
  }
  if (facts.properties != nullptr) {
    shape.has_properties = true;
    for (auto at = facts.properties->begin(); at != facts.properties->end(); ++at) {
      shape.names.push_back(at.key());
    }
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
  std::vector<std::string_view> names;
  for (const std::string_view name : shape.names) {
    if (seen.insert(name).second) names.push_back(name);
  }
  shape.names = std::move(names);
  std::sort(shape.required.begin(), shape.required.end());
  shape.sorted_names = shape.names;
  std::sort(shape.sorted_names.begin(), shape.sorted_names.end());
}

Result<Conjunction> SchemaGraph::member(const SchemaShape& shape, std::string_view name) {
  Conjunction parts;
  for (const SchemaJson* schema : shape.schemas) {
    RETURN_IF_ERROR(count_steps(schema));
    ASSIGN_OR_RETURN(const Entry* const entry, entry_of(schema));
    const auto property = entry->properties.find(name);
    if (property != entry->properties.end()) {
      parts.push_back({property->second});
    } else if (entry->facts.additional != nullptr) {
      paths_.note(entry->facts.additional, schema, "additionalProperties");
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
    paths_.note(entry->facts.additional, schema, "additionalProperties");
    parts.push_back({entry->facts.additional});
  }
  return parts;
}

Result<Conjunction> SchemaGraph::element(const SchemaShape& shape, std::size_t index) {
  Conjunction parts;
  for (const SchemaJson* schema : shape.schemas) {
    RETURN_IF_ERROR(count_steps(schema));
    ASSIGN_OR_RETURN(const Entry* const entry, entry_of(schema));
    const SchemaFacts& facts = entry->facts;
    if (facts.prefix_items != nullptr && index < facts.prefix_items->size()) {
      paths_.note(&(*facts.prefix_items)[index], schema, "prefixItems", index);
      parts.push_back({&(*facts.prefix_items)[index]});
    } else if (facts.items != nullptr) {
      paths_.note(facts.items, schema, "items");
      parts.push_back({facts.items});
    }
  }
  return parts;
}

Result<Conjunction> SchemaGraph::rest(const SchemaShape& shape) {
  return element(shape, kUnbounded);
}

}  // namespace pagoda::structured
