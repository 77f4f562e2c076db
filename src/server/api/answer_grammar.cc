#include "server/api/answer_grammar.h"

#include <fmt/format.h>

#include <memory>
#include <utility>
#include <vector>

#include "chat/literal.h"
#include "server/api/marked_text.h"
#include "server/api/tool_grammar.h"
#include "server/api_error.h"
#include "structured/matcher.h"

namespace pagoda::server {

AnswerGrammar::AnswerGrammar(const Fields& fields, const ServedModel& model,
                             const ReadingTerms& terms)
    : model_(model), terms_(terms) {
  std::optional<AskedGrammar> asked = read_structured_fields(fields, terms, builder_);
  if (!asked) return;
  root_ = asked->node;
  path_ = std::move(asked->path);
  check_model(true);
}

void AnswerGrammar::check_model(bool has_form) const {
  if (model_.mask_vocabulary != nullptr && has_form) return;
  throw ApiError(400, fmt::format("{}: is not supported with this model", path_), path_,
                 "unsupported_parameter");
}

void AnswerGrammar::read_tools(const Fields& fields) {
  ToolChoice choice = read_tool_choice(fields);
  choice.single = choice.single || model_.calls_once();
  const bool may_call = choice.mode != ToolChoice::Mode::kNone && !choice.tools.empty();
  // Nobody taught the model the generic form: it is held to it wherever grammars are to be had.
  const bool is_generic =
      model_.form && model_.form->found.form.generic && model_.mask_vocabulary != nullptr;
  if (!may_call || (!root_ && !choice.needs_grammar() && !is_generic)) {
    if (root_ && model_.form) {
      const MarkedText marked(*model_.form, model_.tokenizer);
      root_ = content(*root_, model_.form->found.form, marked);
    }
    return;
  }
  if (path_.empty()) path_ = choice.mode == ToolChoice::Mode::kRequired ? "tool_choice" : "tools";
  check_model(model_.form && model_.form->found.form.calls);
  if (!root_) begin_compiling(terms_);
  const MarkedText marked(*model_.form, model_.tokenizer);
  root_ = tool_node(choice, model_.form->found.form, marked);
}

structured::GrammarNodeId AnswerGrammar::tool_node(const ToolChoice& choice,
                                                   const chat::AnswerForm& form,
                                                   const MarkedText& marked) {
  ToolGrammar tools(builder_, form, marked, choice);
  NodeId node = builder_.empty();
  if (choice.mode == ToolChoice::Mode::kRequired) {
    reading_ = chat::CallReading::kAlone;
    node = tools.calls(true);
  } else if (!root_) {
    reading_ = chat::CallReading::kAsWritten;
    node = tools.text_or_calls();
  } else {
    reading_ = chat::CallReading::kFirst;
    node = tools.or_calls(content(*root_, form, marked));
  }
  for (const ChosenTool& tool : choice.tools) called_.push_back(tool.name);
  enforced_ = tools.enforced();
  return node;
}

void AnswerGrammar::set_reading(AnswerTerms& answer) const {
  if (reading_ == chat::CallReading::kAnySpelling) return;
  answer.options.calls = reading_;
  answer.schemas.keep(called_);
  for (const std::string& name : enforced_) answer.schemas.enforce(name);
}

structured::GrammarNodeId AnswerGrammar::content(NodeId node, const chat::AnswerForm& form,
                                                 const MarkedText& marked) {
  const auto literal = [&](std::string_view text) { return builder_.literal(marked.encode(text)); };
  if (form.channels) {
    return builder_.sequence({literal("<|channel|>final<|message|>"), node});
  }
  return builder_.sequence({builder_.optional(literal(form.content_begin)), node,
                            builder_.optional(literal(form.content_end))});
}

structured::GrammarNodeId AnswerGrammar::behind_reasoning(NodeId node, const AnswerTerms& answer) {
  const chat::AnswerForm& form = answer.form->found.form;
  const MarkedText marked(*answer.form, model_.tokenizer);
  const auto literal = [&](std::string_view text) { return builder_.literal(marked.encode(text)); };
  if (form.channels) {
    // No other message begins within the reasoning.
    const NodeId text = builder_.text_until(marked.marker("<|end|>"), literal("<|start|>assistant"),
                                            false, {"<|message|>"});
    const NodeId reasoning = builder_.sequence({literal("<|channel|>analysis<|message|>"), text});
    return builder_.sequence({builder_.optional(reasoning), node});
  }
  if (!form.reasoning || (!answer.options.in_reasoning && !answer.may_reason)) return node;
  // The white space that the template writes behind the reasoning may be there, or a part of it:
  // what readers skip.
  const std::string_view space = chat::tail_space(form.reasoning->end);
  NodeId gap = builder_.empty();
  for (std::size_t i = space.size(); i-- > 0;) {
    gap = builder_.optional(builder_.sequence({literal(space.substr(i, 1)), gap}));
  }
  const NodeId rest = builder_.text_until(marked.marker(chat::core(form.reasoning->end)), gap);
  if (answer.options.in_reasoning) return builder_.sequence({rest, node});
  const NodeId begin = literal(chat::core(form.reasoning->begin));
  if (begin == builder_.empty()) return node;
  const NodeId reasoning = builder_.sequence({begin, rest});
  return builder_.sequence({builder_.optional(reasoning), node});
}

void AnswerGrammar::finish(const AnswerTerms* answer, CompletionRequest& request) {
  if (!root_) return;
  const NodeId root = answer == nullptr ? *root_ : behind_reasoning(*root_, *answer);
  const auto grammar = builder_.finish(root);
  if (!grammar.ok()) refuse_grammar(path_, grammar.error());
  auto matcher = std::make_shared<structured::Matcher>(grammar.value(), model_.mask_vocabulary);
  // The first mask is computed here: a grammar that is too ambiguous for it is the client's error,
  // and all choices begin with it.
  std::vector<structured::MaskWord> mask(model_.mask_vocabulary->words());
  const Status first = matcher->fill_mask(mask);
  if (!first.ok()) refuse_grammar(path_, first.error());
  matcher->trim();  // each choice copies it
  request.engine.constraint = std::move(matcher);
}

}  // namespace pagoda::server
