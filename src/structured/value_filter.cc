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
#include "structured/string_formats.h"
#include "structured/text_cursor.h"
#include "structured/text_lengths.h"

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

// The first character of a text that ends values: no counted or patterned string has it.
CodePointSet first_character(std::string_view end) {
  if (end.empty() || end.front() == kControlByte) return {};
  const std::uint32_t first = TextCursor(end).take_code_point();
  return CodePointSet::of({{first, first}});
}

// The texts of a pattern that have as many code points as the shape wants.
Result<GrammarNodeId> measured_text(PatternCache& patterns, CharacterForm form,
                                    const CodePointSet& left_out, const SchemaShape& shape,
                                    SchemaGraph& graph) {
  constexpr std::uint64_t kWorkMax = 50'000'000;
  constexpr std::uint64_t kWorkPerStep = 1024;
  const StringRule& rule = shape.strings.front();
  ASSIGN_OR_RETURN(const Pattern pattern, patterns.read(rule, form, left_out, graph, true));
  const std::uint32_t least = std::max(pattern.least, shape.length_least);
  const std::uint32_t most = std::min(pattern.most, shape.length_most);
  if (least > most) return patterns.tree().never();
  if (most != kUnbounded) {
    std::uint64_t work = 0;
    const std::optional<bool> is_some =
        has_length(patterns.tree(), pattern.node, least, most, kWorkMax, work);
    RETURN_IF_ERROR(graph.count_steps(rule.owner, work / kWorkPerStep));
    if (!is_some) {
      return graph.error_at(rule.owner, rule.is_format ? "format" : "pattern",
                            "is too large together with minLength or maxLength");
    }
    if (!*is_some) return patterns.tree().never();
  }
  return patterns.tree().measured(pattern.node, least, most);
}

// The text of a string with a pattern or format, without its quotes.
Result<GrammarNodeId> patterned_text(PatternCache& patterns, CharacterForm form,
                                     const CodePointSet& left_out, const SchemaShape& shape,
                                     SchemaGraph& graph) {
  const StringRule& rule = shape.strings.front();
  const Result<Pattern> read = patterns.read(rule, form, left_out, graph);
  if (!read.ok()) return read.error();
  const Pattern& pattern = read.value();
  GrammarNodeId body = pattern.node;
  const bool has_bounds = pattern.least < shape.length_least || pattern.most > shape.length_most;
  if (has_bounds && !pattern.run) return measured_text(patterns, form, left_out, shape, graph);
  if (has_bounds) {
    body = within_bounds(patterns.tree(), *pattern.run, std::max(pattern.least, shape.length_least),
                         std::min(pattern.most, shape.length_most));
  }
  return body;
}

Result<GrammarNodeId> string_node(PatternCache& patterns, JsonNodes& json, const SchemaShape& shape,
                                  SchemaGraph& graph) {
  if (shape.strings.empty()) return json.string(shape.length_least, shape.length_most);
  const JsonStyle& style = json.style();
  const CharacterForm form = style.is_json() ? CharacterForm::kJson : CharacterForm::kPlain;
  ASSIGN_OR_RETURN(
      const GrammarNodeId text,
      patterned_text(patterns, form, first_character(style.quote_text()), shape, graph));
  const GrammarNodeId quote = patterns.tree().literal(style.is_json() ? "\"" : style.quote.bytes);
  return patterns.tree().sequence({quote, text, quote});
}

std::string json_text(const std::string& text) { return "\"" + json_escaped(text) + "\""; }

bool speaks_of_structures(const SchemaShape& shape) {
  return !shape.names.empty() || shape.has_properties || shape.has_additional || shape.has_items ||
         shape.has_prefix || shape.items_least > 0 || shape.items_most != kUnbounded;
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
    PatternCache patterns(tree);
    ASSIGN_OR_RETURN(const GrammarNodeId node, string_node(patterns, json, shape, graph));
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
    const std::optional<bool> matches = matcher.matches(text);
    RETURN_IF_ERROR(count(1 + (matcher.work() - before) / kWorkPerStep));
    if (matches) return *matches;
    return graph_.error_at(shape_.schemas.front(),
                           "the pattern beside enum or const is too ambiguous");
  }

  const SchemaShape& shape_;
  SchemaGraph& graph_;
  std::optional<Strings> strings_;  // nothing: the shape says nothing about strings
};

}  // namespace

std::string scalar_text(const SchemaJson& value, const JsonNodes& json) {
  return value.is_string() ? json.quoted(value.get_ref<const std::string&>()) : value.dump();
}

Result<Pattern> PatternCache::read(const StringRule& rule, CharacterForm form,
                                   const CodePointSet& left_out, SchemaGraph& graph,
                                   bool measured) {
  constexpr std::size_t kBytesPerStep = 8;
  const Key key = {rule.text, rule.is_format, form, !left_out.empty(), measured};
  const auto known = known_.find(key);
  if (known != known_.end()) return known->second;
  const std::string text = rule.is_format ? *format_pattern(*rule.text) : *rule.text;
  RETURN_IF_ERROR(graph.count_steps(rule.owner, 1 + text.size() / kBytesPerStep));
  const PatternMatch match = rule.is_format ? PatternMatch::kWhole : PatternMatch::kSearch;
  const Result<Pattern> read = read_pattern(text, match, form, tree_, left_out, measured);
  if (!read.ok()) {
    return graph.error_at(rule.owner, rule.is_format ? "format" : "pattern", read.error().message);
  }
  known_.emplace(key, read.value());
  return read.value();
}

Result<std::optional<GrammarNodeId>> plain_text_node(PatternCache& patterns,
                                                     const SchemaShape& shape, std::string_view end,
                                                     SchemaGraph& graph) {
  GrammarTree& tree = patterns.tree();
  if (shape.values) {
    ASSIGN_OR_RETURN(const std::vector<const SchemaJson*> values, allowed_values(shape, graph));
    std::vector<std::string> texts;
    for (const SchemaJson* value : values) {
      if (!value->is_string()) continue;
      texts.push_back(value->get<std::string>());
      if (ends_there(texts.back(), end)) continue;
      return graph.error_at(shape.schemas.front(),
                            "a text of enum or const has what ends the value in this form of "
                            "calls");
    }
    return std::optional(tree.choice(std::move(texts)));
  }
  const CodePointSet left_out = first_character(end);
  if (!shape.strings.empty()) {
    ASSIGN_OR_RETURN(const GrammarNodeId text,
                     patterned_text(patterns, CharacterForm::kPlain, left_out, shape, graph));
    return std::optional(text);
  }
  if (shape.length_least == 0 && shape.length_most == kUnbounded) {
    return std::optional<GrammarNodeId>();
  }
  const GrammarNodeId inner = tree.code_points(CodePointSet::all().without(left_out));
  return std::optional(tree.repeat(inner, shape.length_least, shape.length_most));
}

Result<std::vector<GrammarNodeId>> scalar_nodes(PatternCache& patterns, JsonNodes& json,
                                                const SchemaShape& shape, SchemaGraph& graph) {
  GrammarTree& tree = patterns.tree();
  std::vector<GrammarNodeId> nodes;
  if ((shape.types & kStringType) != 0) {
    ASSIGN_OR_RETURN(nodes.emplace_back(), string_node(patterns, json, shape, graph));
  }
  if ((shape.types & (kIntegerType | kFractionType)) == kIntegerType && shape.numbers.empty()) {
    nodes.push_back(json.any_integer());
  } else if ((shape.types & (kIntegerType | kFractionType)) != 0) {
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
