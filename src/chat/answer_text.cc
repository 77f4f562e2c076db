#include "chat/answer_text.h"

#include "chat/call_literals.h"
#include "chat/json_stream.h"

namespace pagoda::chat {
namespace {

using Json = nlohmann::ordered_json;

std::string quoted_value(const Json& value, const std::string& quote) {
  if (value.is_string()) return quote + value.get<std::string>() + quote;
  if (!value.is_structured()) return spaced_json(value);
  std::string text;
  for (const auto& [key, member] : value.items()) {
    text += text.empty() ? "" : ",";
    text += (value.is_object() ? key + ":" : "") + quoted_value(member, quote);
  }
  return value.is_object() ? "{" + text + "}" : "[" + text + "]";
}

std::string python_value(const Json& value) {
  if (value.is_boolean()) return value.get<bool>() ? "True" : "False";
  if (value.is_null()) return "None";
  if (!value.is_structured()) return spaced_json(value);
  std::string text;
  for (const auto& [key, member] : value.items()) {
    text += text.empty() ? "" : ", ";
    text += (value.is_object() ? '"' + json_escaped(key) + "\": " : "") + python_value(member);
  }
  return value.is_object() ? "{" + text + "}" : "[" + text + "]";
}

// As MiniCPM's template decides it.
std::string quoted_text(const TaggedArguments& tagged, const std::string& text) {
  const bool is_plain = text.find_first_of("<&\n") == std::string::npos;
  return is_plain ? text : tagged.text_begin + text + tagged.text_end;
}

JsonKind kind_of(const Json& value) {
  if (value.is_number()) return JsonKind::kNumber;
  if (value.is_boolean()) return JsonKind::kBoolean;
  if (value.is_null()) return JsonKind::kNull;
  return value.is_array() ? JsonKind::kArray : JsonKind::kObject;
}

const KeyEnd& key_end_before(const TaggedArguments& tagged, const Json& value) {
  const KeyEnd* chosen = &tagged.key_ends.front();
  for (const KeyEnd& end : tagged.key_ends) {
    if (end.type != (value.is_string() ? ArgumentType::kString : ArgumentType::kJson)) continue;
    chosen = &end;
    if (value.is_string() || end.kind == JsonKind::kAny || end.kind == kind_of(value)) break;
  }
  return *chosen;
}

std::string tagged_value(const TaggedArguments& tagged, const std::string& key, const Json& value);

// Tags within tags; members that are null are left out, as templates do.
std::string nested_value(const TaggedArguments& tagged, const Json& value) {
  std::string text;
  for (const auto& [key, member] : value.items()) {
    if (value.is_object() && member.is_null()) continue;
    text += tagged_value(tagged, value.is_object() ? key : "item", member);
  }
  return text;
}

std::string tagged_value(const TaggedArguments& tagged, const std::string& key, const Json& value) {
  std::string text = tagged.key_begin + key + key_end_before(tagged, value).text;
  if (tagged.nests && value.is_structured()) {
    text += nested_value(tagged, value);
  } else if (value.is_string()) {
    text += quoted_text(tagged, value.get<std::string>());
  } else {
    text += spaced_json(value);
  }
  text += tagged.value_end;
  return tagged.value_end_has_key ? text + key + tagged.close_end : text;
}

std::string write_arguments(const ToolCallForm& form, const Json& arguments) {
  if (form.syntax == CallSyntax::kJsonObject) return spaced_json(arguments);
  std::string text;
  switch (form.arguments) {
    case ArgumentSyntax::kJson:
      return spaced_json(arguments);
    case ArgumentSyntax::kQuoted:
      return quoted_value(arguments, form.quote);
    case ArgumentSyntax::kTagged:
      for (const auto& [key, value] : arguments.items()) {
        text += tagged_value(form.tagged, key, value);
      }
      return text;
    case ArgumentSyntax::kKeywords:
      for (const auto& [key, value] : arguments.items()) {
        text += (text.empty() ? "" : ", ") + key + "=" + python_value(value);
      }
      return text;
  }
  return text;
}

// gpt-oss: one message a part; the generation prompt has written "<|start|>assistant".
std::string write_channels(const WrittenAnswer& answer) {
  std::string text;
  const auto open = [&] {
    return text.empty() ? std::string() : text + "<|end|><|start|>assistant";
  };
  if (!answer.reasoning.empty()) {
    text = open() + "<|channel|>analysis<|message|>" + answer.reasoning;
  }
  if (!answer.content.empty()) text = open() + "<|channel|>final<|message|>" + answer.content;
  for (const WrittenCall& call : answer.calls) {
    text = open() + " to=functions." + call.name + "<|channel|>commentary json<|message|>" +
           spaced_json(call.arguments);
  }
  return text;
}

}  // namespace

std::string write_calls(const ToolCallForm& form, const std::vector<WrittenCall>& calls) {
  std::string text = form.section_begin;
  for (unsigned i = 0; i < calls.size(); ++i) {
    const CallLiterals literals = call_literals(form, calls[i].name, i);
    if (i > 0) text += form.separator;
    const bool is_json = literals.arguments == ArgumentSyntax::kJson && !calls[i].raw.empty();
    text += literals.begin;
    text += is_json ? calls[i].raw : write_arguments(form, calls[i].arguments);
    text += literals.end;
  }
  return text + form.section_end;
}

std::string spaced_json(const Json& value) {
  if (!value.is_structured()) {
    return value.dump(-1, ' ', false, Json::error_handler_t::replace);
  }
  std::string text;
  for (const auto& [key, member] : value.items()) {
    text += text.empty() ? "" : ", ";
    text += (value.is_object() ? '"' + json_escaped(key) + "\": " : "") + spaced_json(member);
  }
  return value.is_object() ? "{" + text + "}" : "[" + text + "]";
}

std::string write_answer(const AnswerForm& form, const WrittenAnswer& answer, bool in_reasoning) {
  if (form.channels) return write_channels(answer);
  std::string text;
  if (form.reasoning && (in_reasoning || !answer.reasoning.empty())) {
    text = (in_reasoning ? "" : form.reasoning->begin) + answer.reasoning + form.reasoning->end;
  }
  if (!answer.content.empty()) {
    text += form.content_begin + answer.content + form.content_end;
  }
  if (answer.calls.empty() || !form.calls) return text;
  if (!answer.content.empty()) text += form.calls->before;
  return text + write_calls(*form.calls, answer.calls);
}

}  // namespace pagoda::chat
