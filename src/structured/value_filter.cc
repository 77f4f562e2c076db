#include "structured/value_filter.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "structured/character_form.h"
#include "structured/grammar.h"
#include "structured/matcher.h"
#include "structured/number_nodes.h"
#include "structured/pattern_reader.h"
#include "structured/string_formats.h"

namespace pagoda::structured {
namespace {

// The texts of a run that have `least` to `most` code points.
GrammarNodeId within_bounds(GrammarTree& tree, const PatternRun& run, std::uint32_t least,
                            std::uint32_t most) {
  if (most < run.fixed) return tree.never();
  const std::uint32_t fewest = least > run.fixed ? least - run.fixed : 0;
  const std::uint32_t room = most == kUnbounded ? kUnbounded : most - run.fixed;
  return tree.sequence({run.before, tree.repeat(run.character, fewest, room), run.behind});
}

Result<GrammarNodeId> patterned_string(GrammarTree& tree, const SchemaShape& shape) {
  const StringRule& rule = shape.strings.front();
  const std::string text = rule.is_format ? *format_pattern(*rule.text) : *rule.text;
  Result<Pattern> read =
      read_pattern(text, rule.is_format ? PatternMatch::kWhole : PatternMatch::kSearch,
                   CharacterForm::kJson, tree);
  if (!read.ok()) return schema_error(rule.path, read.error().message);
  const Pattern& pattern = read.value();
  GrammarNodeId body = pattern.node;
  const bool has_bounds = pattern.least < shape.length_least || pattern.most > shape.length_most;
  if (has_bounds && !pattern.run) {
    return schema_error(rule.path,
                        "together with minLength or maxLength one class of characters may repeat "
                        "in it, as in ^[a-z][a-z0-9]*$, and all else must have a fixed length");
  }
  if (has_bounds) {
    body = within_bounds(tree, *pattern.run, std::max(pattern.least, shape.length_least),
                         std::min(pattern.most, shape.length_most));
  }
  return tree.sequence({tree.literal("\""), body, tree.literal("\"")});
}

Result<GrammarNodeId> string_node(GrammarTree& tree, const SchemaShape& shape) {
  if (!shape.strings.empty()) return patterned_string(tree, shape);
  return tree.json_string(shape.length_least, shape.length_most);
}

bool speaks_of_scalars(const SchemaShape& shape) {
  return !shape.strings.empty() || !shape.numbers.empty() || shape.length_least > 0 ||
         shape.length_most != kUnbounded;
}

bool speaks_of_structures(const SchemaShape& shape) {
  return !shape.names.empty() || shape.has_additional || shape.has_items || shape.has_prefix ||
         shape.items_least > 0 || shape.items_most != kUnbounded;
}

}  // namespace

std::string scalar_text(const SchemaJson& value) {
  if (!value.is_string()) return value.dump();
  return "\"" + json_escaped(value.get_ref<const std::string&>()) + "\"";
}

Result<std::vector<GrammarNodeId>> scalar_nodes(GrammarTree& tree, const SchemaShape& shape) {
  std::vector<GrammarNodeId> nodes;
  const auto number_error = [&](const Error& error) {
    return schema_error(shape.path, error.message);
  };
  if ((shape.types & kStringType) != 0) {
    ASSIGN_OR_RETURN(nodes.emplace_back(), string_node(tree, shape));
  }
  if ((shape.types & (kIntegerType | kFractionType)) != 0) {
    const bool has_fractions = (shape.types & kFractionType) != 0;
    const Result<GrammarNodeId> number =
        has_fractions ? number_node(tree, shape.numbers) : integer_node(tree, shape.numbers);
    if (!number.ok()) return number_error(number.error());
    nodes.push_back(number.value());
  }
  if ((shape.types & kBooleanType) != 0) nodes.push_back(tree.choice({"true", "false"}));
  if ((shape.types & kNullType) != 0) nodes.push_back(tree.literal("null"));
  return nodes;
}

Result<std::vector<const SchemaJson*>> allowed_values(const SchemaShape& shape) {
  std::vector<const SchemaJson*> values;
  std::shared_ptr<const Grammar> scalars;
  if (speaks_of_scalars(shape)) {
    GrammarTree tree;
    ASSIGN_OR_RETURN(const std::vector<GrammarNodeId> nodes, scalar_nodes(tree, shape));
    const GrammarNodeId any = tree.alternatives(nodes);
    if (any != tree.never()) {
      const Result<std::shared_ptr<const Grammar>> made = Grammar::compile(tree, any);
      if (made.ok()) scalars = made.value();
    }
  }
  for (const SchemaJson* value : *shape.values) {
    if ((type_of_value(*value) & shape.types) == 0) continue;
    if (value->is_structured()) {
      if (speaks_of_structures(shape)) {
        return schema_error(shape.path,
                            "objects and arrays in enum or const beside keywords about their "
                            "members are not supported");
      }
      values.push_back(value);
    } else if (!speaks_of_scalars(shape) ||
               (scalars != nullptr && matches_text(*scalars, scalar_text(*value)))) {
      values.push_back(value);
    }
  }
  return values;
}

}  // namespace pagoda::structured
