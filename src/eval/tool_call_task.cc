#include <fmt/format.h>

#include <memory>
#include <utility>

#include "chat/answer_parser.h"
#include "chat/tool_instructions.h"
#include "chat/tool_schemas.h"
#include "eval/task.h"
#include "structured/grammar.h"
#include "structured/matcher.h"
#include "text/detokenizer.h"
#include "text/prompt_tokens.h"
#include "text/strict_json.h"

namespace pagoda::eval {
namespace {

using ToolJson = text::ChatJson;

constexpr std::uint32_t kCallTokens = 128;

// A tool, and what a user says that wants it called.
struct ToolCase {
  const char* name;
  const char* description;
  const char* parameters;  // a JSON schema
  const char* question;
};

constexpr ToolCase kToolCases[] = {
    {"get_weather", "Returns the weather of a city.",
     R"({"type": "object", "properties": {"city": {"type": "string"},
         "unit": {"type": "string", "enum": ["celsius", "fahrenheit"]}}, "required": ["city"]})",
     "What is the weather in Lisbon now, in celsius?"},
    {"set_alarm", "Sets an alarm.",
     R"({"type": "object", "properties": {"hour": {"type": "integer", "minimum": 0, "maximum": 23},
         "minute": {"type": "integer", "minimum": 0, "maximum": 59}},
         "required": ["hour", "minute"]})",
     "Set an alarm for 6:45 in the morning."},
    {"send_message", "Sends a message to people.",
     R"({"type": "object", "properties": {"to": {"type": "array", "items": {"type": "string"}},
         "text": {"type": "string"}}, "required": ["to", "text"]})",
     "Send Ada and Grace the message: the train is late."},
    {"convert_currency", "Converts an amount of money.",
     R"({"type": "object", "properties": {"amount": {"type": "number"},
         "from": {"type": "string"}, "into": {"type": "string"}},
         "required": ["amount", "from", "into"]})",
     "How much are 12.50 euros in yen?"},
};

// A tool call is scored with its question's tool, schemas and grammar.
struct CallCheck {
  const text::Tokenizer& tokenizer;
  const chat::ServedForm& form;
  bool in_reasoning = false;
  std::string tool;
  chat::ToolSchemas schemas;
  ToolJson parameters;
  std::shared_ptr<const structured::Grammar> grammar;
};

// Members in the order of the schema: the order in which a model wrote them is its own.
ToolJson in_schema_order(const ToolJson& arguments, const ToolJson& parameters) {
  ToolJson ordered = ToolJson::object();
  for (const auto& [name, schema] : parameters["properties"].items()) {
    if (arguments.contains(name)) ordered[name] = arguments[name];
  }
  for (const auto& [name, value] : arguments.items()) {
    if (!ordered.contains(name)) ordered[name] = value;  // one that the schema does not have
  }
  return ordered;
}

bool is_valid_call(const CallCheck& check, std::span<const TokenId> answer) {
  text::Detokenizer detokenizer(check.tokenizer, {.shown = check.form.call_tokens});
  std::string text;
  for (const TokenId token : answer) text += detokenizer.push(token);
  text += detokenizer.finish();
  chat::AnswerParser parser(check.form.found.form, check.schemas,
                            {.in_reasoning = check.in_reasoning, .single_call = true});
  std::vector<chat::AnswerEvent> events = parser.push(text);
  for (chat::AnswerEvent& event : parser.finish()) events.push_back(std::move(event));
  std::string name;
  std::string arguments;
  for (const chat::AnswerEvent& event : events) {
    if (event.kind == chat::AnswerEvent::Kind::kCallBegin && name.empty()) name = event.text;
    if (event.kind == chat::AnswerEvent::Kind::kArguments) arguments += event.text;
  }
  if (name != check.tool || parser.cut_within_call()) return false;
  const Result<ToolJson> json = text::parse_strict_json(arguments);
  if (!json.ok() || !json.value().is_object()) return false;
  return structured::matches_text(*check.grammar,
                                  in_schema_order(json.value(), check.parameters).dump());
}

ToolJson tools_json() {
  ToolJson tools = ToolJson::array();
  for (const ToolCase& each : kToolCases) {
    tools.push_back({{"type", "function"},
                     {"function",
                      {{"name", each.name},
                       {"description", each.description},
                       {"parameters", ToolJson::parse(each.parameters)}}}});
  }
  return tools;
}

}  // namespace

Result<std::optional<Task>> tool_call_task(const TaskModel& model) {
  if (model.chat == nullptr || model.form == nullptr || !model.form->found.form.calls) {
    return std::optional<Task>();
  }
  const chat::FoundForm& found = model.form->found;
  const ToolJson tools = tools_json();
  Task task = {.name = "tool_call", .questions = {}};
  for (const ToolCase& each : kToolCases) {
    text::Conversation conversation;
    conversation.tools = tools;
    conversation.messages.push_back({{"role", "user"}, {"content", each.question}});
    if (!found.shows_tools) {
      chat::add_tool_instructions(*found.form.calls, tools, conversation.messages);
    }
    const Result<text::OriginText> prompt = model.chat->render(conversation);
    if (!prompt.ok()) return std::optional<Task>();
    const auto check = std::make_shared<CallCheck>(
        CallCheck{.tokenizer = model.tokenizer,
                  .form = *model.form,
                  .in_reasoning = chat::opens_reasoning(found.form, prompt.value()),
                  .tool = each.name,
                  .schemas = chat::ToolSchemas(tools),
                  .parameters = ToolJson::parse(each.parameters),
                  .grammar = nullptr});
    ASSIGN_OR_RETURN(check->grammar, structured::grammar_from_schema(check->parameters));
    std::vector<TokenId> tokens = text::tokenise_prompt(prompt.value(), model.tokenizer).ids;
    if (tokens.size() + kCallTokens > model.context_tokens) continue;
    task.questions.push_back({.cell = each.name,
                              .prompt = std::move(tokens),
                              .tokens_max = kCallTokens,
                              .is_right = [check](std::span<const TokenId> answer) {
                                return is_valid_call(*check, answer);
                              }});
  }
  if (task.questions.empty()) return std::optional<Task>();
  return std::optional<Task>(std::move(task));
}

}  // namespace pagoda::eval
