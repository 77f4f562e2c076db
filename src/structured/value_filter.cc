#include "structured/value_filter.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <string_view>
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

// The text of a string with a pattern or format, without its quotes.
Result<GrammarNodeId> patterned_text(GrammarTree& tree, CharacterForm form,
                                     const SchemaShape& shape, const SchemaGraph& graph) {
  const StringRule& rule = shape.strings.front();
  const auto error = [&](std::string_view what) {
    return graph.error_at(rule.owner, rule.is_format ? "format" : "pattern", what);
  };
  const std::string text = rule.is_format ? *format_pattern(*rule.text) : *rule.text;
  Result<Pattern> read =
      read_pattern(text, rule.is_format ? PatternMatch::kWhole : PatternMatch::kSearch, form, tree);
  if (!read.ok()) return error(read.error().message);
  const Pattern& pattern = read.value();
  GrammarNodeId body = pattern.node;
  const bool has_bounds = pattern.least < shape.length_least || pattern.most > shape.length_most;
  if (has_bounds && !pattern.run) {
    return error(
        "together with minLength or maxLength one class of characters may repeat "
        "in it, as in ^[a-z][a-z0-9]*$, and all else must have a fixed length");
  }
  if (has_bounds) {
    body = within_bounds(tree, *pattern.run, std::max(pattern.least, shape.length_least),
                         std::min(pattern.most, shape.length_most));
  }
  return body;
}

Result<GrammarNodeId> string_node(GrammarTree& tree, JsonNodes& json, const SchemaShape& shape,
                                  const SchemaGraph& graph) {
  if (shape.strings.empty()) return json.string(shape.length_least, shape.length_most);
  const bool is_json = json.style().is_json();
  ASSIGN_OR_RETURN(
      const GrammarNodeId text,
      patterned_text(tree, is_json ? CharacterForm::kJson : CharacterForm::kPlain, shape, graph));
  const GrammarNodeId quote = tree.literal(is_json ? "\"" : json.style().quote);
  return tree.sequence({quote, text, quote});
}

std::string json_text(const std::string& text) { return "\"" + json_escaped(text) + "\""; }

bool speaks_of_structures(const SchemaShape& shape) {
  return !shape.names.empty() || shape.has_additional || shape.has_items || shape.has_prefix ||
         shape.items_least > 0 || shape.items_most != kUnbounded;
}

// ScalarFilter tries strings and numbers on the shape's keywords about them.
class ScalarFilter {
 public:
  static Result<ScalarFilter> create(const SchemaShape& shape, SchemaGraph& graph) {
    ScalarFilter filter(shape, graph);
    const bool has_keywords =
        !shape.strings.empty() || shape.length_least > 0 || shape.length_most != kUnbounded;
    if (!has_keywords || (shape.types & kStringType) == 0) return filter;
    GrammarTree tree;
    JsonNodes json(tree);
    ASSIGN_OR_RETURN(const GrammarNodeId node, string_node(tree, json, shape, graph));
    RETURN_IF_ERROR(filter.count(tree.bytes() / kBytesPerStep));
    filter.strings_ = Strings{};
    if (node == tree.never()) return filter;
    const Result<std::shared_ptr<const Grammar>> grammar = Grammar::compile(tree, node);
    if (!grammar.ok()) {
      return graph.error_at(shape.schemas.front(), grammar.error().message);
    }
    RETURN_IF_ERROR(filter.count(grammar.value()->bytes() / kBytesPerStep));
    filter.strings_->matcher.emplace(*grammar.value());
    return filter;
  }

  Result<bool> allows(const SchemaJson& value) {
    if (value.is_string()) return allows_text(json_text(value.get_ref<const std::string&>()));
    if (!value.is_number() || shape_.numbers.empty()) return true;
    const std::optional<Decimal> number = decimal_of(value);
    const std::optional<bool> allowed = number ? fits(*number, shape_.numbers) : std::nullopt;
    if (allowed) return *allowed;
    return graph_.error_at(
        shape_.schemas.front(),
        "a number in enum or const has too many digits for the bounds beside it");
  }

 private:
  // One step of the graph stands for this much memory written, or configurations visited.
  static constexpr std::uint64_t kBytesPerStep = 256;
  static constexpr std::uint64_t kWorkPerStep = 8;

  struct Strings {
    std::optional<TextMatcher> matcher;  // nothing: no string matches
  };

  ScalarFilter(const SchemaShape& shape, SchemaGraph& graph) : shape_(shape), graph_(graph) {}

  Status count(std::uint64_t steps) { return graph_.count_steps(shape_.schemas.front(), steps); }

  Result<bool> allows_text(const std::string& text) {
    if (!strings_) return true;
    if (!strings_->matcher) return false;
    TextMatcher& matcher = *strings_->matcher;
    const std::uint64_t before = matcher.work();
    const bool matches = matcher.matches(text);
    RETURN_IF_ERROR(count(1 + (matcher.work() - before) / kWorkPerStep));
    return matches;
  }

  const SchemaShape& shape_;
  SchemaGraph& graph_;
  std::optional<Strings> strings_;  // nothing: the shape says nothing about strings
};

}  // namespace

std::string scalar_text(const SchemaJson& value, const JsonNodes& json) {
  return value.is_string() ? json.quoted(value.get_ref<const std::string&>()) : value.dump();
}

Result<std::optional<GrammarNodeId>> plain_text_node(GrammarTree& tree, const SchemaShape& shape,
                                                     SchemaGraph& graph) {
  if (shape.values) {
    ASSIGN_OR_RETURN(const std::vector<const SchemaJson*> values, allowed_values(shape, graph));
    std::vector<std::string> texts;
    for (const SchemaJson* value : values) {
      if (value->is_string()) texts.push_back(value->get<std::string>());
    }
    return std::optional(tree.choice(std::move(texts)));
  }
  if (!shape.strings.empty()) {
    ASSIGN_OR_RETURN(const GrammarNodeId text,
                     patterned_text(tree, CharacterForm::kPlain, shape, graph));
    return std::optional(text);
  }
  if (shape.length_least == 0 && shape.length_most == kUnbounded) {
    return std::optional<GrammarNodeId>();
  }
  // A tag's bracket is left out, so that the text ends where its tag is.
  const CodePointSet inner = CodePointSet::all().without(CodePointSet::of({{'<', '<'}}));
  return std::optional(tree.repeat(tree.code_points(inner), shape.length_least, shape.length_most));
}

Result<std::vector<GrammarNodeId>> scalar_nodes(GrammarTree& tree, JsonNodes& json,
                                                const SchemaShape& shape,
                                                const SchemaGraph& graph) {
  std::vector<GrammarNodeId> nodes;
  if ((shape.types & kStringType) != 0) {
    ASSIGN_OR_RETURN(nodes.emplace_back(), string_node(tree, json, shape, graph));
  }
  if ((shape.types & (kIntegerType | kFractionType)) != 0) {
    const bool has_fractions = (shape.types & kFractionType) != 0;
    const Result<GrammarNodeId> number =
        has_fractions ? number_node(tree, shape.numbers) : integer_node(tree, shape.numbers);
    if (!number.ok()) return graph.error_at(shape.schemas.front(), number.error().message);
    nodes.push_back(number.value());
  }
  if ((shape.types & kBooleanType) != 0) nodes.push_back(tree.choice({"true", "false"}));
  if ((shape.types & kNullType) != 0) nodes.push_back(tree.literal("null"));
  return nodes;
}

Result<std::vector<const SchemaJson*>> allowed_values(const SchemaShape& shape,
                                                      SchemaGraph& graph) {
  ASSIGN_OR_RETURN(ScalarFilter filter, ScalarFilter::create(shape, graph));
  std::vector<const SchemaJson*> values;
  for (const auto& [number, value] : *shape.values) {
    if ((type_of_value(*value) & shape.types) == 0) continue;
    if (value->is_structured() && speaks_of_structures(shape)) {
      return graph.error_at(shape.schemas.front(),
                            "objects and arrays in enum or const beside keywords about their "
                            "members are not supported");
    }
    ASSIGN_OR_RETURN(const bool is_allowed, filter.allows(*value));
    if (is_allowed) values.push_back(value);
  }
  return values;
}

}  // namespace pagoda::structured
