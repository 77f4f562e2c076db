#include "server/api/tool_grammar.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "chat/call_literals.h"
#include "chat/call_reader.h"
#include "chat/literal.h"
#include "server/api_error.h"
#include "text/abbreviated.h"

namespace pagoda::server {

using chat::ArgumentSyntax;
using chat::ArgumentType;
using structured::GrammarNodeId;
using structured::JsonMember;
using structured::JsonObject;
using structured::ObjectForm;
using structured::SchemaMember;
using structured::SchemaMembers;

namespace {

const Json& no_parameters() {
  static const Json kSchema = {
      {"type", "object"}, {"properties", Json::object()}, {"additionalProperties", false}};
  return kSchema;
}

const ObjectForm& keyword_form() {
  static const ObjectForm kForm = {
      .open = "", .close = "", .comma = ", ", .key_begin = "", .key_end = "=", .is_json = false};
  return kForm;
}

const chat::KeyEnd& key_end_of(const chat::TaggedArguments& tagged, ArgumentType type) {
  const auto found = std::find_if(tagged.key_ends.begin(), tagged.key_ends.end(),
                                  [type](const chat::KeyEnd& end) { return end.type == type; });
  return found == tagged.key_ends.end() ? tagged.key_ends.front() : *found;
}

// Whether a value of the schema may be of this kind, as far as its `type` tells.
bool may_be(const Json* schema, chat::JsonKind kind) {
  static const std::map<std::string, chat::JsonKind, std::less<>> kKinds = {
      {"number", chat::JsonKind::kNumber},   {"integer", chat::JsonKind::kNumber},
      {"boolean", chat::JsonKind::kBoolean}, {"null", chat::JsonKind::kNull},
      {"array", chat::JsonKind::kArray},     {"object", chat::JsonKind::kObject}};
  const bool tells = schema != nullptr && schema->is_object() && schema->contains("type");
  if (!tells || kind == chat::JsonKind::kAny) return true;
  const auto is_kind = [kind](const Json& name) {
    const auto found =
        name.is_string() ? kKinds.find(name.get_ref<const std::string&>()) : kKinds.end();
    return found != kKinds.end() && found->second == kind;
  };
  const Json& type = (*schema)["type"];
  return type.is_array() ? std::any_of(type.begin(), type.end(), is_kind) : is_kind(type);
}

const Json* property_of(const ChosenTool& tool, const std::string& name) {
  if (tool.parameters == nullptr || !tool.parameters->is_object()) return nullptr;
  const auto properties = tool.parameters->find("properties");
  if (properties == tool.parameters->end() || !properties->is_object()) return nullptr;
  const auto property = properties->find(name);
  return property == properties->end() ? nullptr : &*property;
}

// The ends of keys whose value is JSON of this schema.
std::vector<std::string> json_key_ends(const chat::TaggedArguments& tagged, const Json* schema) {
  std::vector<std::string> ends;
  for (const chat::KeyEnd& end : tagged.key_ends) {
    const bool fits = end.type == ArgumentType::kJson && may_be(schema, end.kind);
    if (fits) ends.push_back(end.text);
  }
  if (ends.empty()) ends.push_back(key_end_of(tagged, ArgumentType::kJson).text);
  return ends;
}

}  // namespace

ToolGrammar::ToolGrammar(structured::GrammarBuilder& builder, const chat::AnswerForm& form,
                         const MarkedText& marked, const ToolChoice& choice)
    : builder_(builder), form_(form), calls_(*form.calls), marked_(marked), choice_(choice) {}

GrammarNodeId ToolGrammar::calls(bool by_schema) {
  by_schema_ = by_schema;
  return form_.channels ? channel_call() : section(0);
}

// A marker announces calls: behind it nothing but a call is allowed.
GrammarNodeId ToolGrammar::text_or_calls() {
  by_schema_ = false;
  if (form_.channels) {
    // No other message begins within the text.
    const GrammarNodeId nothing = builder_.alternatives({});
    const GrammarNodeId text =
        builder_.sequence({literal("<|channel|>final<|message|>"),
                           builder_.text_until(marked_.marker("<|message|>"), nothing, true)});
    return builder_.alternatives({text, channel_call()});
  }
  const std::string marker = chat::section_marker(calls_);
  if (!marker.empty()) {
    const std::string& first =
        chat::core(calls_.section_begin).empty() ? calls_.call_begin : calls_.section_begin;
    // The generic form's other spellings begin no text, so that a call is never content.
    return builder_.text_until(marked_.marker(marker), section(first.find(marker) + marker.size()),
                               true,
                               form_.generic ? calls_.other_begins : std::vector<std::string>());
  }
  // Calls stand at the start of the answer.
  const std::string opening = chat::bare_opening(calls_);
  if (opening.empty()) return builder_.alternatives({section(0), builder_.any_text()});
  // Neither does the text begin reasoning, behind which they would stand at the start again.
  std::vector<std::string> openings = {opening};
  if (form_.reasoning && !chat::core(form_.reasoning->begin).empty()) {
    openings.emplace_back(chat::core(form_.reasoning->begin));
  }
  return builder_.alternatives({section(0), builder_.text_not_beginning(openings)});
}

// Content may begin as calls do: behind what announces calls it is content no more.
GrammarNodeId ToolGrammar::or_calls(NodeId content) {
  by_schema_ = false;
  if (form_.channels) return builder_.alternatives({content, channel_call()});
  if (!chat::section_marker(calls_).empty()) {
    const std::string announced = chat::calls_announcement(calls_, "");
    return builder_.alternatives({content, builder_.sequence({literal(announced), builder_.commit(),
                                                              section(announced.size())})});
  }
  std::vector<GrammarNodeId> firsts;
  std::vector<GrammarNodeId> others;
  for (const ChosenTool& tool : choice_.tools) {
    const GrammarNodeId given = arguments(tool);
    others.push_back(call(tool, given, 0));
    firsts.push_back(
        builder_.sequence({literal(chat::calls_announcement(calls_, tool.name)), builder_.commit(),
                           given, literal(chat::call_literals(calls_, tool.name).end)}));
  }
  return builder_.alternatives(
      {content, builder_.sequence({builder_.alternatives(firsts), section_rest(others)})});
}

GrammarNodeId ToolGrammar::section(std::size_t skipped) {
  const bool has_section = !chat::core(calls_.section_begin).empty();
  std::vector<GrammarNodeId> firsts;
  std::vector<GrammarNodeId> others;
  for (const ChosenTool& tool : choice_.tools) {
    const GrammarNodeId given = arguments(tool);
    others.push_back(call(tool, given, 0));
    firsts.push_back(has_section || skipped == 0 ? others.back() : call(tool, given, skipped));
  }
  return builder_.sequence(
      {literal(std::string_view(calls_.section_begin).substr(has_section ? skipped : 0)),
       builder_.alternatives(firsts), section_rest(others)});
}

GrammarNodeId ToolGrammar::section_rest(const std::vector<NodeId>& calls) {
  const GrammarNodeId more =
      builder_.sequence({literal(calls_.separator), builder_.alternatives(calls)});
  return builder_.sequence(
      {choice_.single ? builder_.empty() : builder_.repeat(more, 0), literal(calls_.section_end)});
}

GrammarNodeId ToolGrammar::call(const ChosenTool& tool, NodeId given, std::size_t skipped) {
  const chat::CallLiterals literals = chat::call_literals(calls_, tool.name);
  std::string_view begin = std::string_view(literals.begin).substr(skipped);
  std::vector<GrammarNodeId> parts;
  if (calls_.has_slot && !calls_.slot_is_id) {
    // The number of the call, which the literals have as 0.
    begin.remove_suffix(calls_.arguments_begin.size() + 1);
    parts = {literal(begin), builder_.regex("[0-9]{1,3}").value(), literal(calls_.arguments_begin)};
  } else {
    parts = {literal(begin)};
  }
  parts.push_back(given);
  parts.push_back(literal(literals.end));
  return builder_.sequence(parts);
}

// <|channel|>commentary to=functions.N <|constrain|>json<|message|>{…}
GrammarNodeId ToolGrammar::channel_call() {
  std::vector<GrammarNodeId> branches;
  for (const ChosenTool& tool : choice_.tools) {
    branches.push_back(
        builder_.sequence({literal(tool.name + " <|constrain|>json<|message|>"), arguments(tool)}));
  }
  return builder_.sequence(
      {literal("<|channel|>commentary to=functions."), builder_.alternatives(branches)});
}

GrammarNodeId ToolGrammar::arguments(const ChosenTool& tool) {
  if (tool.strict || by_schema_) {
    const Result<NodeId> made = arguments_by_schema(tool);
    if (made.ok()) {
      enforced_.push_back(tool.name);
      return made.value();
    }
    // Tools behind one that took all there is are not left out in silence.
    if (tool.strict || builder_.is_spent()) refuse_grammar(tool.path, made.error());
  }
  if (!any_) any_ = any_arguments();
  return *any_;
}

structured::JsonStyle ToolGrammar::quoted_style() const {
  return {.quote = marked_.marker(calls_.quote)};
}

Result<GrammarNodeId> ToolGrammar::arguments_by_schema(const ChosenTool& tool) {
  const Json& schema = tool.parameters == nullptr ? no_parameters() : *tool.parameters;
  const bool is_json = form_.channels || calls_.syntax == chat::CallSyntax::kJsonObject ||
                       calls_.arguments == ArgumentSyntax::kJson;
  if (is_json) return builder_.schema(schema);
  if (calls_.arguments == ArgumentSyntax::kQuoted) return builder_.schema(schema, quoted_style());
  const bool is_tagged = calls_.arguments == ArgumentSyntax::kTagged;
  ASSIGN_OR_RETURN(const SchemaMembers all,
                   builder_.members(schema, is_tagged ? chat::core(calls_.tagged.value_end) : ""));
  JsonObject object;
  const chat::ToolSchemas types(Json::array({{{"name", tool.name}, {"parameters", schema}}}));
  for (const SchemaMember& member : all.members) {
    const ArgumentType type = types.type_of(tool.name, member.name);
    RETURN_IF_ERROR(check_key(member.name));
    JsonMember& written = object.members.emplace_back();
    written = {member.name, member.value, member.required};
    if (is_tagged) {
      ASSIGN_OR_RETURN(written.value, tagged_value(member, type, property_of(tool, member.name)));
    }
  }
  if (!is_tagged) {
    object.additional = all.additional;
    return builder_.object(object, keyword_form());
  }
  return builder_.object(object, {.open = "",
                                  .close = "",
                                  .comma = "",
                                  .key_begin = marked_.encode(calls_.tagged.key_begin),
                                  .key_end = "",
                                  .is_json = false});
}

// Readers find the end of a name that has no quotes.
Status ToolGrammar::check_key(const std::string& name) const {
  const auto refused = [&] {
    return Error{ErrorCode::kUnsupported,
                 fmt::format("#: the model's form of calls cannot write the name \"{}\"",
                             text::abbreviated(name, 100))};
  };
  if (name.empty() || name.size() > chat::kNameBytesMax || chat::core(name) != name) {
    return refused();
  }
  if (calls_.arguments == ArgumentSyntax::kKeywords) {
    const bool is_word = std::all_of(name.begin(), name.end(), [](char c) {
      return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
             c == '_' || c == '-';
    });
    if (!is_word) return refused();
    return ok_status();
  }
  for (const chat::KeyEnd& end : calls_.tagged.key_ends) {
    const std::vector<std::string> parts = chat::tags(end.text);
    if (!parts.empty() && !structured::ends_there(name, parts.front())) return refused();
  }
  return ok_status();
}

// A text up to `end` and what is behind that, or between the form's quotes. Only quotes may hold
// the end, and what begins with one is read up to the closing one.
GrammarNodeId ToolGrammar::text_up_to(std::string_view end, NodeId behind) {
  const chat::TaggedArguments& tagged = calls_.tagged;
  if (tagged.text_begin.empty()) return builder_.text_until(marked_.marker(end), behind);
  const GrammarNodeId plain =
      builder_.text_until(marked_.marker(end), behind, false, {tagged.text_begin});
  const GrammarNodeId quoted =
      builder_.text_until(marked_.marker(tagged.text_end + std::string(end)), behind);
  return builder_.alternatives({plain, builder_.sequence({literal(tagged.text_begin), quoted})});
}

// Returns the grammar behind a key: the key's end, the value, and the value's end. A string stands
// there as it is, and null as the word, unless keys say of which type their value is. `schema` is
// the value's; nullptr: it is not known.
Result<GrammarNodeId> ToolGrammar::tagged_value(const SchemaMember& member, ArgumentType type,
                                                const Json* schema) {
  const chat::TaggedArguments& tagged = calls_.tagged;
  const bool is_nullable = type == ArgumentType::kNullableString;
  const bool is_text = type == ArgumentType::kString || is_nullable;
  const bool keys_have_types = tagged.key_ends.front().type != ArgumentType::kBySchema;
  if (is_nullable && !keys_have_types && !member.may_be_null) {
    return Error{ErrorCode::kUnsupported,
                 fmt::format("#: the word null as a text of \"{}\" would be read as null",
                             text::abbreviated(member.name, 100))};
  }
  const std::string closing =
      tagged.value_end + (tagged.value_end_has_key ? member.name + tagged.close_end : "");
  const auto json_value = [&](const Json* of, GrammarNodeId node) {
    std::vector<GrammarNodeId> ends;
    for (const std::string& end : json_key_ends(tagged, of)) ends.push_back(literal(end));
    return builder_.sequence({builder_.alternatives(ends), node, literal(closing)});
  };
  if (!is_text) return json_value(schema, member.value);
  const GrammarNodeId key_end = literal(key_end_of(tagged, ArgumentType::kString).text);
  std::vector<GrammarNodeId> branches;
  if (member.text) {
    branches.push_back(builder_.sequence({key_end, *member.text, literal(closing)}));
  } else {
    branches.push_back(builder_.sequence(
        {key_end, text_up_to(chat::core(closing), literal(chat::tail_space(closing)))}));
  }
  if (member.may_be_null && is_nullable) {
    const Json null_schema = {{"type", "null"}};
    branches.push_back(json_value(&null_schema, builder_.literal("null")));
  }
  return builder_.alternatives(branches);
}

// A tag with text, or with tags. The first mark behind the opening tag tells which: it begins the
// closing tag, or another one.
GrammarNodeId ToolGrammar::nested_argument(NodeId key) {
  const chat::TaggedArguments& tagged = calls_.tagged;
  const std::string_view slash = std::string_view(tagged.value_end).substr(tagged.key_begin.size());
  const GrammarNodeId name_end = builder_.sequence({key, literal(tagged.close_end)});
  const GrammarNodeId text = builder_.text_until(marked_.marker(tagged.key_begin),
                                                 builder_.sequence({literal(slash), name_end}));
  return builder_.recursive([&](NodeId self) {
    const GrammarNodeId tags =
        builder_.sequence({builder_.repeat(self, 1), literal(tagged.value_end), name_end});
    return builder_.sequence({literal(tagged.key_begin), key,
                              literal(key_end_of(tagged, ArgumentType::kString).text),
                              builder_.alternatives({text, tags})});
  });
}

GrammarNodeId ToolGrammar::any_arguments() {
  const bool is_json = form_.channels || calls_.syntax == chat::CallSyntax::kJsonObject ||
                       calls_.arguments == ArgumentSyntax::kJson;
  if (is_json) return builder_.json_object();
  if (calls_.arguments == ArgumentSyntax::kQuoted) return builder_.json_object(quoted_style());
  const GrammarNodeId key = builder_.regex("[A-Za-z_][A-Za-z0-9_-]{0,63}").value();
  if (calls_.arguments == ArgumentSyntax::kKeywords) {
    JsonObject object;
    object.additional = builder_.json_value();
    return builder_.object(object, keyword_form());
  }
  const chat::TaggedArguments& tagged = calls_.tagged;
  if (tagged.nests) return builder_.repeat(nested_argument(key), 0);
  // The end's key is not known to be that of the beginning; readers take the first end that fits.
  const GrammarNodeId closing = tagged.value_end_has_key
                                    ? builder_.sequence({key, literal(tagged.close_end)})
                                    : literal(chat::tail_space(tagged.value_end));
  std::vector<GrammarNodeId> key_ends;
  for (const chat::KeyEnd& end : tagged.key_ends) key_ends.push_back(literal(end.text));
  const GrammarNodeId value =
      builder_.sequence({literal(tagged.key_begin), key, builder_.alternatives(key_ends),
                         text_up_to(chat::core(tagged.value_end), closing)});
  return builder_.repeat(value, 0);
}

}  // namespace pagoda::server
