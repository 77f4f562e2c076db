#include "chat/served_form.h"

#include <algorithm>
#include <string>

#include "chat/channel_reader.h"

namespace pagoda::chat {
namespace {

std::vector<std::string> text_literals(const AnswerForm& form) {
  if (form.channels) return channel_marks();
  std::vector<std::string> literals = {form.content_begin, form.content_end, form.turn_end};
  if (form.reasoning) {
    literals.push_back(form.reasoning->begin);
    literals.push_back(form.reasoning->end);
  }
  return literals;
}

void add_call_literals(const ToolCallForm& calls, std::vector<std::string>& literals) {
  for (const std::string& literal :
       {calls.section_begin, calls.section_end, calls.call_begin, calls.call_end, calls.separator,
        calls.name_prefix, calls.name_end, calls.arguments_begin, calls.quote,
        calls.tagged.key_begin, calls.tagged.value_end, calls.tagged.close_end}) {
    literals.push_back(literal);
  }
  for (const KeyEnd& end : calls.tagged.key_ends) literals.push_back(end.text);
  literals.insert(literals.end(), calls.other_begins.begin(), calls.other_begins.end());
}

std::vector<TokenId> tokens_within(const std::vector<std::string>& literals,
                                   const text::Tokenizer& tokenizer) {
  std::vector<TokenId> found;
  for (std::uint32_t i = 0; i < tokenizer.size(); ++i) {
    const TokenId id(i);
    if (!tokenizer.is_control(id)) continue;
    const std::string_view text = tokenizer.text_of(id);
    if (text.size() < 2) continue;
    const bool within = std::any_of(
        literals.begin(), literals.end(),
        [&](const std::string& literal) { return literal.find(text) != std::string::npos; });
    if (within) found.push_back(id);
  }
  return found;
}

}  // namespace

Result<ServedForm> find_served_form(const text::ChatTemplate& chat,
                                    const text::Tokenizer& tokenizer,
                                    const FormOverrides& overrides) {
  ServedForm served;
  ASSIGN_OR_RETURN(served.found, find_form(chat, overrides));
  std::vector<std::string> literals = text_literals(served.found.form);
  served.text_tokens = tokens_within(literals, tokenizer);
  if (served.found.form.calls) add_call_literals(*served.found.form.calls, literals);
  served.call_tokens = tokens_within(literals, tokenizer);
  return served;
}

}  // namespace pagoda::chat
