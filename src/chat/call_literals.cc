#include "chat/call_literals.h"

#include <fmt/format.h>

#include "chat/call_reader.h"
#include "chat/json_stream.h"
#include "chat/literal.h"

namespace pagoda::chat {

CallLiterals call_literals(const ToolCallForm& form, std::string_view name, unsigned call) {
  CallLiterals literals;
  if (form.syntax == CallSyntax::kJsonObject) {
    const std::string quoted = json_escaped(name);
    literals.begin = form.name_is_key ? fmt::format("{}{{\"{}\": ", form.call_begin, quoted)
                                      : fmt::format("{}{{\"{}\": \"{}\", \"{}\": ", form.call_begin,
                                                    json_escaped(form.name_key), quoted,
                                                    json_escaped(form.arguments_key));
    literals.end = "}" + form.call_end;
    return literals;
  }
  literals.arguments = form.arguments;
  literals.begin = fmt::format("{}{}{}", form.call_begin, form.name_prefix, name);
  if (form.has_slot && form.slot_is_id) {
    literals.begin += form.arguments_begin;
  } else if (form.has_slot) {
    literals.begin += fmt::format("{}{}{}", form.name_end, call, form.arguments_begin);
  } else {
    literals.begin += form.name_end;
  }
  if (form.arguments == ArgumentSyntax::kKeywords) {
    literals.begin += "(";
    literals.end = ")";
  }
  literals.end += form.call_end;
  return literals;
}

std::string bare_opening(const ToolCallForm& form) {
  if (form.syntax != CallSyntax::kJsonObject) return std::string(core(form.section_begin));
  const std::string begin = form.section_begin + call_literals(form, "").begin;
  const std::size_t key = begin.find('"');
  return begin.substr(0, begin.find('"', key + 1) + 1);
}

std::string calls_announcement(const ToolCallForm& form, std::string_view name) {
  const std::string marker = section_marker(form);
  if (!marker.empty()) {
    const std::string& first =
        core(form.section_begin).empty() ? form.call_begin : form.section_begin;
    return first.substr(0, first.find(marker) + marker.size());
  }
  return form.section_begin + call_literals(form, name).begin;
}

}  // namespace pagoda::chat
