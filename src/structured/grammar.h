// Grammar is what an answer must match, compiled and immutable: requests share it.
//
// The functions below make one from what clients send; GrammarBuilder puts several together, such
// as a tool call's text around the schema of its arguments.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "structured/grammar_tree.h"
#include "structured/json_nodes.h"
#include "structured/program.h"
#include "structured/schema_compiler.h"
#include "structured/schema_facts.h"
#include "structured/text_nodes.h"

namespace pagoda::structured {

class Grammar {
 public:
  static Result<std::shared_ptr<const Grammar>> compile(const GrammarTree& tree,
                                                        GrammarNodeId root);

  const std::shared_ptr<const Program>& program() const { return program_; }
  // Estimates the memory that the grammar takes.
  std::uint64_t bytes() const;

 private:
  explicit Grammar(Program program)
      : program_(std::make_shared<const Program>(std::move(program))) {}

  std::shared_ptr<const Program> program_;
};

// Errors name the place in their input: a JSON pointer, a byte or a rule.
Result<std::shared_ptr<const Grammar>> grammar_from_schema(const SchemaJson& schema);
// Any JSON object.
Result<std::shared_ptr<const Grammar>> grammar_of_json_object();
// The whole answer matches.
Result<std::shared_ptr<const Grammar>> grammar_from_regex(std::string_view pattern);
Result<std::shared_ptr<const Grammar>> grammar_from_choice(std::vector<std::string> texts);
Result<std::shared_ptr<const Grammar>> grammar_from_gbnf(std::string_view text);

// GrammarBuilder composes grammars of parts:
//
//   GrammarBuilder builder;
//   const GrammarNodeId arguments = builder.schema(parameters).value();
//   const GrammarNodeId call = builder.sequence({builder.literal("<tool_call>"), arguments,
//                                         builder.literal("</tool_call>")});
//   builder.finish(builder.alternatives({call, other_call}));
class GrammarBuilder {
 public:
  GrammarNodeId literal(std::string_view text) { return tree_.literal(text); }
  GrammarNodeId sequence(const std::vector<GrammarNodeId>& parts) { return tree_.sequence(parts); }
  GrammarNodeId alternatives(const std::vector<GrammarNodeId>& branches) {
    return tree_.alternatives(branches);
  }
  GrammarNodeId repeat(GrammarNodeId part, std::uint32_t least, std::uint32_t most = kUnbounded) {
    return tree_.repeat(part, least, most);
  }
  GrammarNodeId optional(GrammarNodeId part) { return tree_.optional(part); }
  GrammarNodeId empty() const { return tree_.empty(); }
  // A node that may stand within itself: `body` gets it and returns what it is.
  GrammarNodeId recursive(const std::function<GrammarNodeId(GrammarNodeId)>& body) {
    const RuleId rule = tree_.declare_rule();
    const GrammarNodeId self = tree_.rule(rule);
    tree_.define_rule(rule, body(self));
    return self;
  }
  // See GrammarTree::commit().
  GrammarNodeId commit() { return tree_.commit(); }
  // Errors as those of grammar_from_choice().
  Result<GrammarNodeId> choice(std::vector<std::string> texts);
  GrammarNodeId json_object(const JsonStyle& style = {});
  GrammarNodeId json_value();
  Result<GrammarNodeId> schema(const SchemaJson& schema, const JsonStyle& style = {});
  // `value_end`: see compile_members().
  Result<SchemaMembers> members(const SchemaJson& schema, std::string_view value_end = {});
  GrammarNodeId object(const JsonObject& object, const ObjectForm& form);
  Result<GrammarNodeId> regex(std::string_view pattern);
  Result<GrammarNodeId> gbnf(std::string_view text);
  // text_nodes.h
  GrammarNodeId any_text();
  GrammarNodeId text_until(const TextMarker& marker, GrammarNodeId behind, bool may_end = false,
                           const std::vector<std::string>& avoided = {});
  GrammarNodeId text_until(std::string_view marker, GrammarNodeId behind, bool may_end = false) {
    return text_until(TextMarker{std::string(marker)}, behind, may_end);
  }
  GrammarNodeId text_not_beginning(const std::vector<std::string>& prefixes);

  // True: the schemas so far took all the steps and memory that a grammar has, and any other is
  // refused.
  bool is_spent() const;

  Result<std::shared_ptr<const Grammar>> finish(GrammarNodeId root) const {
    return Grammar::compile(tree_, root);
  }

 private:
  GrammarTree tree_;
  std::uint64_t steps_ = 0;  // of all schemas, each of which has kSchemaStepsMax
};

}  // namespace pagoda::structured
