// The grammar of tool calls in a model's own form, whatever that is: JSON between markers, a name
// with tagged values, keywords as in Python, quotes of its own, messages of the harmony format.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "chat/answer_form.h"
#include "chat/tool_schemas.h"
#include "server/api/marked_text.h"
#include "server/api/tool_choice.h"
#include "structured/grammar.h"

namespace pagoda::server {

class ToolGrammar {
 public:
  // All of them outlive the ToolGrammar.
  ToolGrammar(structured::GrammarBuilder& builder, const chat::AnswerForm& form,
              const MarkedText& marked, const ToolChoice& choice);

  // The calls alone. Arguments of strict tools match their schema; those of others do with
  // `by_schema`, unless their schema has a keyword that no grammar obeys, and are any object else.
  // Throws ApiError.
  structured::GrammarNodeId calls(bool by_schema);
  // Any text without calls, or with calls at its end, as calls(false) has them.
  structured::GrammarNodeId text_or_calls();
  // The content, or calls as calls(false) has them. A text that begins with
  // chat::calls_announcement() of a tool is calls.
  structured::GrammarNodeId or_calls(structured::GrammarNodeId content);
  // The tools whose arguments match their schema in what was returned.
  const std::vector<std::string>& enforced() const { return enforced_; }

 private:
  using NodeId = structured::GrammarNodeId;

  // A section of calls without its first `skipped` bytes.
  NodeId section(std::size_t skipped);
  // Any of these calls behind the first, and the section's end.
  NodeId section_rest(const std::vector<NodeId>& calls);
  NodeId call(const ChosenTool& tool, NodeId given, std::size_t skipped);
  NodeId channel_call();
  NodeId arguments(const ChosenTool& tool);
  Result<NodeId> arguments_by_schema(const ChosenTool& tool);
  NodeId any_arguments();
  NodeId nested_argument(NodeId key);
  NodeId text_up_to(std::string_view end, NodeId behind);
  Result<NodeId> tagged_value(const structured::SchemaMember& member, chat::ArgumentType type,
                              const Json* schema);
  Status check_key(const std::string& name) const;
  NodeId literal(std::string_view text) { return builder_.literal(marked_.encode(text)); }
  structured::JsonStyle quoted_style() const;

  structured::GrammarBuilder& builder_;
  const chat::AnswerForm& form_;
  const chat::ToolCallForm& calls_;
  const MarkedText& marked_;
  const ToolChoice& choice_;
  bool by_schema_ = true;      // arguments of tools that are not strict, too
  std::optional<NodeId> any_;  // any arguments
  std::vector<std::string> enforced_;
};

}  // namespace pagoda::server
