#include "text/chat_template.h"

#include <fmt/format.h>

#include <fstream>
#include <utility>

#include "text/chat_messages.h"
#include "text/jinja/unicode.h"

namespace pagoda::text {
namespace {

constexpr std::string_view kTemplateKey = "tokenizer.chat_template";
constexpr std::string_view kToolUseKey = "tokenizer.chat_template.tool_use";

// Current templates take a few hundred steps for conversations as small as the probes.
constexpr jinja::RenderLimits kProbeLimits = {.steps = 100'000, .bytes = 16U << 20};

// No template contains this word.
constexpr const char* kNeedle = "nEEdLe";
constexpr const char* kSystemNeedle = "sYsTEm-nEEdLe";
constexpr const char* kOtherNeedle = "oThEr-nEEdLe";
constexpr const char* kCallId = "call00001";

ChatJson message(const char* role, ChatJson content) {
  return {{"role", role}, {"content", std::move(content)}};
}

ChatJson text_part(const char* text) {
  return ChatJson::array({{{"type", "text"}, {"text", text}}});
}

// Returns a tool call as clients send it. Mistral's templates want ids of nine letters and digits.
ChatJson tool_call_message(const ChatJson& content, const ChatJson& arguments) {
  ChatJson call = message("assistant", content);
  call["tool_calls"] =
      ChatJson::array({{{"id", kCallId},
                        {"type", "function"},
                        {"function", {{"name", "probe"}, {"arguments", arguments}}}}});
  return call;
}

bool has(const std::optional<std::string>& prompt, std::string_view text) {
  return prompt && prompt->find(text) != std::string::npos;
}

// Cuts the prompt where the text that generation continues from ends. Where the template stripped
// white space from that text's end, the space before the mark is stripped too.
Status cut_at_mark(OriginText& prompt) {
  std::size_t run = prompt.runs().size();
  while (run > 0 && prompt.runs()[run - 1].origin != kContinuationMark) --run;
  if (run == 0) {
    return Error{ErrorCode::kInvalidArgument,
                 "continue_final_message: the template leaves the last message out"};
  }
  const std::size_t begin = run == 1 ? 0 : prompt.runs()[run - 2].end;
  const bool whole = prompt.runs()[run - 1].end - begin == kContinuationTag.size();
  prompt.truncate(begin);
  if (!whole) prompt.truncate(begin - jinja::trailing_space_bytes(prompt.bytes()));
  return ok_status();
}

// The error of a template that cannot be parsed names its source. Errors about a conversation do
// not, because the client that reads them need not know the paths of this machine.
Result<ChatTemplate> parse_of(const std::string& where, std::string_view source,
                              const Tokenizer& tokenizer) {
  Result<ChatTemplate> parsed =
      ChatTemplate::parse("chat template", source, special_texts(tokenizer));
  if (parsed.ok()) return parsed;
  return Error{parsed.error().code, fmt::format("{}: {}", where, parsed.error().message)};
}

}  // namespace

SpecialTexts special_texts(const Tokenizer& tokenizer) {
  const auto text = [&](std::optional<TokenId> id) -> std::optional<std::string> {
    if (!id) return std::nullopt;
    return std::string(tokenizer.text_of(*id));
  };
  return {text(tokenizer.bos()), text(tokenizer.eos())};
}

Result<ChatTemplate> ChatTemplate::parse(std::string name, std::string_view source,
                                         SpecialTexts specials) {
  ASSIGN_OR_RETURN(jinja::Template parsed, jinja::Template::parse(std::move(name), source));
  ChatTemplate made(std::move(parsed), source, std::move(specials));
  made.find_traits();
  return made;
}

Result<ChatTemplate> ChatTemplate::load(const gguf::Metadata& metadata,
                                        const Tokenizer& tokenizer) {
  if (!metadata.contains(kTemplateKey)) {
    return Error{ErrorCode::kNotFound, fmt::format("{}: the model has no chat template ({})",
                                                   metadata.source(), kTemplateKey)};
  }
  const auto parse_key = [&](std::string_view key) -> Result<ChatTemplate> {
    ASSIGN_OR_RETURN(const std::string_view source, metadata.text(key));
    return parse_of(fmt::format("{}: {}", metadata.source(), key), source, tokenizer);
  };
  ASSIGN_OR_RETURN(ChatTemplate main, parse_key(kTemplateKey));
  if (!metadata.contains(kToolUseKey)) return main;
  ASSIGN_OR_RETURN(ChatTemplate tool_use, parse_key(kToolUseKey));
  main.source_ += '\n';
  main.source_ += tool_use.source_;
  main.tool_use_ = std::make_shared<const ChatTemplate>(std::move(tool_use));
  return main;
}

Result<ChatTemplate> ChatTemplate::load_file(const std::string& path, const Tokenizer& tokenizer) {
  std::ifstream stream(path, std::ios::binary);
  // The buffer has one byte more than allowed, so that parsing refuses longer files.
  std::string source(jinja::Template::kSourceBytesMax + 1, '\0');
  stream.read(source.data(), static_cast<std::streamsize>(source.size()));
  source.resize(static_cast<std::size_t>(stream.gcount()));
  if (!stream.is_open() || stream.bad()) {
    return Error{ErrorCode::kIo,
                 fmt::format("cannot read the chat template '{}': expected a file", path)};
  }
  return parse_of(path, source, tokenizer);
}

std::optional<std::string> ChatTemplate::probe(const ChatJson& messages) const {
  Conversation conversation;
  conversation.messages = messages;
  auto prompt = render(conversation, kProbeLimits);
  if (!prompt.ok()) {
    // Some templates for tool use need a list of tools.
    conversation.tools = ChatJson::array();
    prompt = render(conversation, kProbeLimits);
  }
  if (!prompt.ok()) return std::nullopt;
  return std::string(prompt.value().bytes());
}

ToolArguments ChatTemplate::find_tool_arguments(const ChatJson& user,
                                                const ChatJson& result) const {
  ChatJson answer = message("tool", result);
  answer["tool_call_id"] = kCallId;
  answer["name"] = "probe";
  const auto call = [&](const ChatJson& arguments, const ChatJson& content) {
    return probe(ChatJson::array({user, tool_call_message(content, arguments), answer}));
  };
  const std::string key(kSystemNeedle);
  // Templates differ in the content that they expect beside a tool call.
  for (const ChatJson& content : {ChatJson(nullptr), ChatJson("")}) {
    const auto as_object = call({{key, 1}}, content);
    if (has(as_object, key) && !has(as_object, "'" + key + "'")) return ToolArguments::kObject;
    if (has(call("{\"" + key + "\": 1}", content), "{\"" + key)) return ToolArguments::kText;
  }
  return ToolArguments::kObject;
}

bool ChatTemplate::takes_null_content(const ChatJson& user) const {
  ChatJson result = message("tool", user["content"]);
  result["tool_call_id"] = kCallId;
  result["name"] = "probe";
  // The template wants the arguments either as an object or as text. Some look at the content of
  // earlier turns alone.
  for (const ChatJson& arguments : {ChatJson::object(), ChatJson("{}")}) {
    const ChatJson call = tool_call_message(nullptr, arguments);
    if (!probe(ChatJson::array({user, call}))) continue;
    const ChatJson empty = tool_call_message("", arguments);
    const ChatJson answer = message("assistant", user["content"]);
    const bool takes_turns =
        probe(ChatJson::array({user, empty, result, answer, user})).has_value();
    return !takes_turns || probe(ChatJson::array({user, call, result, answer, user})).has_value();
  }
  return false;
}

void ChatTemplate::find_role_traits(TemplateTraits& found) const {
  const auto content = [&](const char* words) {
    return found.text_content ? ChatJson(words) : text_part(words);
  };
  const ChatJson user = message("user", content(kNeedle));
  const ChatJson answer = message("assistant", content("yes"));
  const ChatJson system = message("system", content(kSystemNeedle));
  found.system_role = has(probe(ChatJson::array({system, user})), kSystemNeedle);
  found.developer_role = has(
      probe(ChatJson::array({message("developer", content(kSystemNeedle)), user})), kSystemNeedle);
  const ChatJson other = message("system", content(kOtherNeedle));
  const auto shows_both = [&](const ChatJson& messages) {
    const auto prompt = probe(messages);
    return has(prompt, kSystemNeedle) && has(prompt, kOtherNeedle);
  };
  found.systems = shows_both(ChatJson::array({system, other, user})) &&
                  shows_both(ChatJson::array({system, user, answer, other, user}));
}

void ChatTemplate::find_call_traits(TemplateTraits& found) const {
  const auto content = [&](const char* words) {
    return found.text_content ? ChatJson(words) : text_part(words);
  };
  const ChatJson user = message("user", content(kNeedle));
  const ChatJson arguments =
      found.tool_arguments == ToolArguments::kText ? ChatJson("{}") : ChatJson::object();
  const ChatJson call = tool_call_message(content(""), arguments);
  ChatJson result = message("tool", content(kSystemNeedle));
  result["tool_call_id"] = kCallId;
  result["name"] = "probe";
  found.tool_role =
      has(probe(ChatJson::array({user, call, result})), kSystemNeedle) ||
      has(probe(ChatJson::array({user, tool_call_message(nullptr, arguments), result})),
          kSystemNeedle) ||
      has(probe(ChatJson::array({user, message("assistant", content("a")), result})),
          kSystemNeedle);

  ChatJson thinking = tool_call_message(content(kSystemNeedle), arguments);
  thinking["reasoning_content"] = kOtherNeedle;
  ChatJson silent = call;
  silent["reasoning_content"] = kOtherNeedle;
  const ChatJson words = message("assistant", content(kSystemNeedle));
  found.words_beside_thinking = probe(ChatJson::array({user, thinking})).has_value() ||
                                !probe(ChatJson::array({user, words, silent})).has_value();
  found.broken_arguments = has(
      probe(ChatJson::array({user, tool_call_message(content(""), kSystemNeedle)})), kSystemNeedle);
}

void ChatTemplate::find_traits() {
  // While the template is probed, nothing is rewritten.
  traits_ = {.part_content = true, .tool_arguments = ToolArguments::kAsSent};
  const auto text = probe(ChatJson::array({message("user", kNeedle)}));
  const auto parts = probe(ChatJson::array({message("user", text_part(kNeedle))}));
  // A template that prints the list itself shows the names of its fields.
  const bool printed = has(parts, "'type'") || has(parts, "\"type\"");
  TemplateTraits found;
  found.part_content = has(parts, kNeedle) && !printed;
  found.text_content = has(text, kNeedle) || !found.part_content;

  const auto content = [&](const char* words) {
    return found.text_content ? ChatJson(words) : text_part(words);
  };
  const ChatJson user = message("user", content(kNeedle));
  find_role_traits(found);
  found.tool_arguments = find_tool_arguments(user, content("1"));
  found.null_content = takes_null_content(user);
  find_call_traits(found);
  traits_ = found;
}

Result<OriginText> ChatTemplate::render(const Conversation& conversation,
                                        const jinja::RenderLimits& limits) const {
  if (tool_use_ && !conversation.tools.is_null()) return tool_use_->render(conversation, limits);
  const bool continues = conversation.continue_final_message;
  const auto bind = [&](jinja::Heap& heap, jinja::Scope& scope) {
    if (specials_.bos) scope.set("bos_token", heap.text(*specials_.bos));
    if (specials_.eos) scope.set("eos_token", heap.text(*specials_.eos));
    bind_extras(conversation, heap, scope);
    scope.set("messages", import_messages(conversation, traits_, heap));
    scope.set("add_generation_prompt",
              jinja::Value::boolean(conversation.add_generation_prompt && !continues));
  };
  const std::time_t now = conversation.now ? *conversation.now : std::time(nullptr);
  ASSIGN_OR_RETURN(OriginText prompt, template_.render(bind, now, limits));
  if (continues) RETURN_IF_ERROR(cut_at_mark(prompt));
  return prompt;
}

}  // namespace pagoda::text
