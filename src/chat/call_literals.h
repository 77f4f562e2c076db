// The texts around a call's arguments, for whoever makes a model write calls: a constrained decoder
// (tool_choice "required", a named tool, strict tools), and the instructions of models whose
// template does not mention tools.
//
//   section_begin  { begin arguments end }  separator …  section_end
#pragma once

#include <string>
#include <string_view>

#include "chat/answer_form.h"

namespace pagoda::chat {

struct CallLiterals {
  std::string begin;  // "<tool_call>\n{\"name\": \"N\", \"arguments\": "
  std::string end;    // "}\n</tool_call>"
  // How the arguments between them are written: kJson is JSON by the tool's schema, kTagged a
  // sequence of the form's key_begin K key_end V value_end, kKeywords a list without its brackets.
  ArgumentSyntax arguments = ArgumentSyntax::kJson;
};

// The texts of call number `call` of an answer. Ids that the model would write are left empty.
CallLiterals call_literals(const ToolCallForm& form, std::string_view name, unsigned call = 0);

// The text at which an answer is seen to be calls that nothing announces: "{\"name\"", or a
// bracket.
std::string bare_opening(const ToolCallForm& form);

// The text behind which an answer that might be something else is calls, the first of them of
// `name`: the marker of calls with what stands before it, or, where nothing announces calls, all
// that is written before the first argument.
std::string calls_announcement(const ToolCallForm& form, std::string_view name);

}  // namespace pagoda::chat
