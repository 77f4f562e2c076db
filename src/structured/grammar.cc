#include "structured/grammar.h"

#include <fmt/format.h>

#include <utility>

#include "structured/character_form.h"
#include "structured/gbnf_reader.h"
#include "structured/pattern_reader.h"
#include "structured/schema_graph.h"
#include "structured/text_cursor.h"
#include "structured/text_nodes.h"

namespace pagoda::structured {
namespace {

constexpr std::size_t kChoicesMax = 10000;
// All schemas of a grammar together: one that is too large leaves steps for others.
constexpr std::uint64_t kGrammarStepsMax = 4 * kSchemaStepsMax;

Error too_large() {
  return {ErrorCode::kOutOfRange, "#: the schemas of the request are too large together"};
}

}  // namespace

Result<std::shared_ptr<const Grammar>> Grammar::compile(const GrammarTree& tree,
                                                        GrammarNodeId root) {
  ASSIGN_OR_RETURN(Program program, compile_program(tree, root));
  return std::shared_ptr<const Grammar>(new Grammar(std::move(program)));
}

std::uint64_t Grammar::bytes() const {
  return program_->code.size() * (sizeof(Instruction) + sizeof(std::uint32_t)) +
         program_->targets.size() * sizeof(Pc) + program_->sets.size() * sizeof(ByteSet) +
         program_->bounds.size() * sizeof(CountBounds) + program_->lengths.bits() / 8;
}

Result<GrammarNodeId> GrammarBuilder::choice(std::vector<std::string> texts) {
  if (texts.empty() || texts.size() > kChoicesMax) {
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("has {} texts, expected 1 to {}", texts.size(), kChoicesMax)};
  }
  for (std::size_t i = 0; i < texts.size(); ++i) {
    if (!texts[i].empty() && is_utf8(texts[i])) continue;
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("text {} is {}", i, texts[i].empty() ? "empty" : "not UTF-8")};
  }
  return tree_.choice(std::move(texts));
}

GrammarNodeId GrammarBuilder::json_object(const JsonStyle& style) {
  return JsonNodes(tree_, style).any_object();
}
GrammarNodeId GrammarBuilder::json_value() { return JsonNodes(tree_).any(); }

Result<GrammarNodeId> GrammarBuilder::schema(const SchemaJson& schema, const JsonStyle& style) {
  std::uint64_t steps = 0;
  Result<GrammarNodeId> node = compile_schema(schema, tree_, steps, style);
  steps_ += steps;
  if (node.ok() && is_spent()) return too_large();
  return node;
}

Result<SchemaMembers> GrammarBuilder::members(const SchemaJson& schema,
                                              std::string_view value_end) {
  std::uint64_t steps = 0;
  Result<SchemaMembers> members = compile_members(schema, tree_, steps, value_end);
  steps_ += steps;
  if (members.ok() && is_spent()) return too_large();
  return members;
}

bool GrammarBuilder::is_spent() const {
  return steps_ > kGrammarStepsMax || tree_.bytes() > kTreeBytesMax;
}

GrammarNodeId GrammarBuilder::object(const JsonObject& object, const ObjectForm& form) {
  return JsonNodes(tree_).object(object, form);
}

GrammarNodeId GrammarBuilder::any_text() { return structured::any_text(tree_); }

GrammarNodeId GrammarBuilder::text_until(const TextMarker& marker, GrammarNodeId behind,
                                         bool may_end, const std::vector<std::string>& avoided) {
  return structured::text_until(tree_, marker, behind, may_end, avoided);
}

GrammarNodeId GrammarBuilder::text_not_beginning(const std::vector<std::string>& prefixes) {
  return structured::text_not_beginning(tree_, prefixes);
}

Result<GrammarNodeId> GrammarBuilder::regex(std::string_view pattern) {
  ASSIGN_OR_RETURN(const Pattern read,
                   read_pattern(pattern, PatternMatch::kWhole, CharacterForm::kPlain, tree_));
  return read.node;
}

Result<GrammarNodeId> GrammarBuilder::gbnf(std::string_view text) { return read_gbnf(text, tree_); }

Result<std::shared_ptr<const Grammar>> grammar_from_schema(const SchemaJson& schema) {
  GrammarBuilder builder;
  ASSIGN_OR_RETURN(const GrammarNodeId root, builder.schema(schema));
  Result<std::shared_ptr<const Grammar>> made = builder.finish(root);
  if (made.ok()) return made;
  const std::string& message = made.error().message;
  const bool has_place =
      message.starts_with("/") || message.starts_with("#") || message.starts_with("…");
  return has_place ? made.error() : schema_error("", message);
}

Result<std::shared_ptr<const Grammar>> grammar_of_json_object() {
  GrammarBuilder builder;
  return builder.finish(builder.json_object());
}

Result<std::shared_ptr<const Grammar>> grammar_from_regex(std::string_view pattern) {
  GrammarBuilder builder;
  ASSIGN_OR_RETURN(const GrammarNodeId root, builder.regex(pattern));
  return builder.finish(root);
}

Result<std::shared_ptr<const Grammar>> grammar_from_choice(std::vector<std::string> texts) {
  GrammarBuilder builder;
  ASSIGN_OR_RETURN(const GrammarNodeId root, builder.choice(std::move(texts)));
  return builder.finish(root);
}

Result<std::shared_ptr<const Grammar>> grammar_from_gbnf(std::string_view text) {
  GrammarBuilder builder;
  ASSIGN_OR_RETURN(const GrammarNodeId root, builder.gbnf(text));
  return builder.finish(root);
}

}  // namespace pagoda::structured
