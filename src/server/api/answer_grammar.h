// The grammar of a request's answer, put together while the request is read: the text that fields
// for structured output ask for, the tool calls that `tool_choice` and `strict` ask for, and the
// reasoning before them.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "server/api/answer_terms.h"
#include "server/api/completion_request.h"
#include "server/api/marked_text.h"
#include "server/api/structured_fields.h"
#include "server/api/tool_choice.h"
#include "server/fields.h"
#include "server/served_model.h"
#include "structured/grammar.h"

namespace pagoda::server {

class AnswerGrammar {
 public:
  // Reads the fields for structured output. The fields' object, the model and the terms outlive it.
  // Throws ApiError and TakesLong.
  AnswerGrammar(const Fields& fields, const ServedModel& model, const ReadingTerms& terms);

  // Reads `tools` and `tool_choice` of a chat. Throws ApiError and TakesLong.
  void read_tools(const Fields& fields);

  // Sets how the answer to a chat is read: where a grammar makes the model write calls in one way,
  // nothing else is a call.
  void set_reading(AnswerTerms& answer) const;

  // Compiles the grammar into request.engine.constraint, unless nothing was asked for. `answer` is
  // of a chat: its reasoning may come first. Throws ApiError.
  void finish(const AnswerTerms* answer, CompletionRequest& request);

 private:
  using NodeId = structured::GrammarNodeId;

  // Throws ApiError for a model without a vocabulary for grammars, or without a form of calls.
  void check_model(bool has_form) const;
  NodeId tool_node(const ToolChoice& choice, const chat::AnswerForm& form,
                   const MarkedText& marked);
  // The answer with the reasoning that may, or must, come before it.
  NodeId behind_reasoning(NodeId node, const AnswerTerms& answer);
  NodeId content(NodeId node, const chat::AnswerForm& form, const MarkedText& marked);

  const ServedModel& model_;
  const ReadingTerms& terms_;
  structured::GrammarBuilder builder_;
  std::optional<NodeId> root_;
  std::string path_;  // of the field that asks
  // Tells how the calls that the grammar allows are read.
  chat::CallReading reading_ = chat::CallReading::kAnySpelling;
  std::vector<std::string> called_;    // the tools that may be called
  std::vector<std::string> enforced_;  // those whose arguments match their schema
};

}  // namespace pagoda::server
