#include "structured/schema_compiler.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <map>
#include <utility>

#include "structured/json_nodes.h"
#include "structured/schema_exclusion.h"
#include "structured/schema_graph.h"
#include "structured/value_filter.h"

namespace pagoda::structured {
namespace {

class SchemaCompiler {
 public:
  SchemaCompiler(const SchemaJson& root, GrammarTree& tree, std::uint64_t& steps,
                 const JsonStyle& style = {})
      : root_(root), graph_(root, steps), tree_(tree), json_(tree, style), patterns_(tree) {}

  // A conjunction is a rule: it is compiled once, and may come back to itself.
  Result<GrammarNodeId> compile_all() {
    ASSIGN_OR_RETURN(const GrammarNodeId root, rule_of({{&root_}}));
    RETURN_IF_ERROR(compile_open());
    return root;
  }

  Result<SchemaMembers> compile_members(std::string_view value_end) {
    ASSIGN_OR_RETURN(const SchemaGraph::Expanded expanded, graph_.expand({{&root_}}));
    const SchemaShape& shape = expanded.shape;
    if (expanded.choice || shape.values || shape.is_never || (shape.types & kObjectType) == 0) {
      return graph_.error_at(&root_, "expected the schema of one object, without alternatives");
    }
    SchemaMembers all;
    for (const std::string_view name : shape.names) {
      ASSIGN_OR_RETURN(Conjunction parts, graph_.member(shape, name));
      SchemaMember member = {.name = std::string(name), .required = shape.requires_member(name)};
      if (!parts.empty() && !value_end.empty()) {
        RETURN_IF_ERROR(add_text(parts, value_end, member));
      }
      ASSIGN_OR_RETURN(member.value, rule_of(std::move(parts)));
      all.members.push_back(std::move(member));
    }
    if (shape.is_open()) {
      ASSIGN_OR_RETURN(Conjunction parts, graph_.additional(shape));
      ASSIGN_OR_RETURN(all.additional, rule_of(std::move(parts)));
    }
    RETURN_IF_ERROR(compile_open());
    return all;
  }

 private:
  // The strings of every shape that the member may have.
  Status add_text(const Conjunction& parts, std::string_view value_end, SchemaMember& member) {
    ASSIGN_OR_RETURN(const std::vector<SchemaShape> shapes, graph_.list_shapes(parts));
    std::vector<GrammarNodeId> texts;
    bool is_any = false;
    for (const SchemaShape& shape : shapes) {
      if (shape.is_never) continue;
      member.may_be_null = member.may_be_null || allows_null(shape);
      if ((shape.types & kStringType) == 0) continue;
      ASSIGN_OR_RETURN(const std::optional<GrammarNodeId> text,
                       plain_text_node(patterns_, shape, value_end, graph_));
      is_any = is_any || !text;
      texts.push_back(text.value_or(tree_.never()));
    }
    if (!is_any) member.text = tree_.alternatives(texts);
    return ok_status();
  }

  static bool allows_null(const SchemaShape& shape) {
    if ((shape.types & kNullType) == 0) return false;
    return !shape.values || std::any_of(shape.values->begin(), shape.values->end(),
                                        [](const SchemaValue& one) { return one.json->is_null(); });
  }

  // Compiles the rules that are referred to.
  Status compile_open() {
    while (!open_.empty()) {
      const auto [conjunction, rule] = std::move(open_.front());
      open_.pop_front();
      tree_.set_scope(graph_.short_place(conjunction.front().schema));
      ASSIGN_OR_RETURN(const GrammarNodeId body, compile(conjunction));
      tree_.define_rule(rule, body);
      if (tree_.bytes() > kTreeBytesMax) {
        return graph_.error_at(conjunction.front().schema, "the schema is too large");
      }
    }
    return ok_status();
  }

  Result<GrammarNodeId> rule_of(Conjunction conjunction) {
    if (conjunction.empty()) return json_.any();
    RETURN_IF_ERROR(graph_.count_steps(conjunction.front().schema, conjunction.size()));
    Conjunction key = conjunction;
    std::sort(key.begin(), key.end());
    const auto [found, is_new] = rules_.try_emplace(std::move(key), 0);
    if (is_new) {
      found->second = tree_.declare_rule(graph_.short_place(conjunction.front().schema));
      open_.emplace_back(std::move(conjunction), found->second);
    }
    return tree_.rule(found->second);
  }

  Result<GrammarNodeId> compile(const Conjunction& conjunction) {
    ASSIGN_OR_RETURN(const SchemaGraph::Expanded expanded, graph_.expand(conjunction));
    if (!expanded.choice) return shape_node(expanded.shape);
    const SchemaChoice& choice = *expanded.choice;
    if (choice.flag == kOneOfDecided) RETURN_IF_ERROR(check_one_of(conjunction, choice));
    std::vector<GrammarNodeId> branches;
    for (std::size_t i = 0; i < choice.branches->size(); ++i) {
      ASSIGN_OR_RETURN(const GrammarNodeId branch, rule_of(graph_.decide(conjunction, choice, i)));
      branches.push_back(branch);
    }
    return tree_.alternatives(branches);
  }

  // Alternatives are judged with all that holds beside them: a sibling may name the member that
  // keeps two of them apart.
  Status check_one_of(const Conjunction& conjunction, const SchemaChoice& choice) {
    std::vector<Conjunction> alternatives;
    for (std::size_t i = 0; i < choice.branches->size(); ++i) {
      RETURN_IF_ERROR(graph_.count_steps(choice.owner, conjunction.size()));
      alternatives.push_back(graph_.decide(conjunction, choice, i));
    }
    ASSIGN_OR_RETURN(const std::optional<OverlappingPair> pair, find_overlap(graph_, alternatives));
    if (!pair) return ok_status();
    return graph_.error_at(
        choice.owner, "oneOf",
        fmt::format("alternatives {} and {} may both match, which a grammar cannot rule out; "
                    "anyOf takes either",
                    pair->first, pair->second));
  }

  static bool is_free(const SchemaShape& shape) {
    return shape.types == kAllTypes && !shape.values && shape.names.empty() &&
           !shape.has_additional && !shape.has_properties && !shape.has_items &&
           !shape.has_prefix && shape.strings.empty() && shape.numbers.empty() &&
           shape.length_least == 0 && shape.length_most == kUnbounded && shape.items_least == 0 &&
           shape.items_most == kUnbounded;
  }

  Result<GrammarNodeId> shape_node(const SchemaShape& shape) {
    if (shape.is_never) return tree_.never();
    if (shape.values) return values_node(shape);
    if (is_free(shape)) return json_.any();
    std::vector<GrammarNodeId> branches;
    if ((shape.types & kObjectType) != 0) {
      ASSIGN_OR_RETURN(branches.emplace_back(), object_node(shape));
    }
    if ((shape.types & kArrayType) != 0) {
      ASSIGN_OR_RETURN(branches.emplace_back(), array_node(shape));
    }
    ASSIGN_OR_RETURN(const std::vector<GrammarNodeId> scalars,
                     scalar_nodes(patterns_, json_, shape, graph_));
    branches.insert(branches.end(), scalars.begin(), scalars.end());
    return tree_.alternatives(branches);
  }

  Result<GrammarNodeId> values_node(const SchemaShape& shape) {
    ASSIGN_OR_RETURN(const std::vector<const SchemaJson*> values, allowed_values(shape, graph_));
    std::vector<std::string> texts;
    std::vector<GrammarNodeId> branches;
    for (const SchemaJson* value : values) {
      if (!json_.can_write(*value)) {
        return graph_.error_at(shape.schemas.front(),
                               "a text of enum or const has the quote of this form of calls");
      }
      if (value->is_structured()) {
        branches.push_back(json_.constant(*value));
      } else {
        texts.push_back(scalar_text(*value, json_));
      }
    }
    branches.push_back(tree_.choice(std::move(texts)));
    return tree_.alternatives(branches);
  }

  Result<GrammarNodeId> object_node(const SchemaShape& shape) {
    JsonObject object;
    for (const std::string_view name : shape.names) {
      if (!json_.can_quote(name)) {
        return graph_.error_at(shape.schemas.front(), "a name has the quote of this form of calls");
      }
      ASSIGN_OR_RETURN(Conjunction parts, graph_.member(shape, name));
      ASSIGN_OR_RETURN(const GrammarNodeId value, rule_of(std::move(parts)));
      object.members.push_back({std::string(name), value, shape.requires_member(name)});
    }
    if (shape.is_open()) {
      ASSIGN_OR_RETURN(Conjunction parts, graph_.additional(shape));
      ASSIGN_OR_RETURN(object.additional, rule_of(std::move(parts)));
    }
    return json_.object(object);
  }

  Result<GrammarNodeId> array_node(const SchemaShape& shape) {
    JsonArray array = {
        .prefix = {}, .rest = {}, .least = shape.items_least, .most = shape.items_most};
    for (std::size_t i = 0; i < shape.prefix_items; ++i) {
      ASSIGN_OR_RETURN(Conjunction parts, graph_.element(shape, i));
      ASSIGN_OR_RETURN(array.prefix.emplace_back(), rule_of(std::move(parts)));
    }
    ASSIGN_OR_RETURN(Conjunction rest, graph_.rest(shape));
    const bool is_closed = std::any_of(rest.begin(), rest.end(), [](const SchemaPart& part) {
      return part.schema->is_boolean() && !part.schema->get<bool>();
    });
    if (!is_closed && (shape.has_items || !shape.has_prefix)) {
      ASSIGN_OR_RETURN(array.rest, rule_of(std::move(rest)));
    }
    return json_.array(array);
  }

  const SchemaJson& root_;
  SchemaGraph graph_;
  GrammarTree& tree_;
  JsonNodes json_;
  PatternCache patterns_;
  std::map<Conjunction, RuleId> rules_;
  std::deque<std::pair<Conjunction, RuleId>> open_;
};

}  // namespace

Result<GrammarNodeId> compile_schema(const SchemaJson& schema, GrammarTree& tree,
                                     std::uint64_t& steps, const JsonStyle& style) {
  return SchemaCompiler(schema, tree, steps, style).compile_all();
}

Result<SchemaMembers> compile_members(const SchemaJson& schema, GrammarTree& tree,
                                      std::uint64_t& steps, std::string_view value_end) {
  return SchemaCompiler(schema, tree, steps).compile_members(value_end);
}

}  // namespace pagoda::structured
