#include "server/api/ollama/ollama_request.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "server/api/completion_fields.h"
#include "server/api/message_fields.h"
#include "server/api_error.h"
#include "server/fields.h"

namespace pagoda::server::ollama {
namespace {

constexpr std::string_view kOptionPrefix = "options.";
constexpr std::string_view kRepeatPenalty = "options.repeat_penalty";

// Chats name them alike, without what stands before the point.
constexpr auto kOptions = std::to_array<std::string_view>({
    "options.temperature",
    "options.top_k",
    "options.top_p",
    "options.min_p",
    "options.seed",
    "options.presence_penalty",
    "options.frequency_penalty",
    "options.typical_p",
    "options.tfs_z",
    "options.mirostat",
    "options.stop",
});

// Others that are read, or that say how Ollama runs a model and change no answer.
constexpr auto kOtherOptions = std::to_array<std::string_view>({
    "f16_kv",
    "low_vram",
    "main_gpu",
    "mirostat_eta",
    "mirostat_tau",
    "num_batch",
    "num_ctx",
    "num_gpu",
    "num_keep",
    "num_predict",
    "num_thread",
    "numa",
    "penalize_newline",
    "repeat_last_n",
    "repeat_penalty",
    "use_mlock",
    "use_mmap",
    "vocab_only",
});

constexpr auto kOllamaFields = std::to_array<std::string_view>({
    "context",
    "format",
    "images",
    "keep_alive",
    "messages",
    "model",
    "name",
    "options",
    "prompt",
    "raw",
    "shift",
    "stream",
    "suffix",
    "system",
    "template",
    "think",
    "tools",
    "truncate",
});

// The penalty is that of chats, which is over the whole prompt and answer: so is Ollama's where
// `repeat_last_n` is -1. A shorter span is named in the log. With 0 there is no penalty.
void take_repeat_penalty(const Fields& fields, TranslatedChat& chat) {
  const auto span = fields.integer("repeat_last_n", -1, INT32_MAX);
  const auto penalty = fields.number("repeat_penalty", -1e9, 1e9);
  if (!penalty || *penalty == 1 || span == 0) return;
  chat.write("repetition_penalty", kRepeatPenalty, *penalty);
  if (span.value_or(-1) > 0) chat.ignored.emplace_back("options.repeat_last_n");
}

// Misspelt options, and those that chats alone have, would be silent.
void note_unknown_options(const Json& options, TranslatedChat& chat) {
  for (const auto& [name, value] : options.items()) {
    const auto is_named = [&](std::string_view path) {
      return path.substr(kOptionPrefix.size()) == name;
    };
    const bool is_known =
        std::any_of(kOptions.begin(), kOptions.end(), is_named) ||
        std::find(kOtherOptions.begin(), kOtherOptions.end(), name) != kOtherOptions.end();
    if (is_known || value.is_null() || !is_plain_name(name)) continue;
    if (chat.ignored.size() == kIgnoredNamesMax) return;
    chat.ignored.push_back(fmt::format("{}{}", kOptionPrefix, name));
  }
}

void take_options(Json& body, TranslatedChat& chat) {
  const Json* const options = Fields(body).object("options");
  if (options == nullptr) return;
  const Fields fields(*options, "options");
  const auto tokens = fields.integer("num_predict", -2, INT32_MAX);
  // Negative numbers ask for what fits.
  chat.takes_what_fits = tokens.value_or(0) < 0;
  const std::int64_t asked = chat.takes_what_fits ? INT32_MAX : tokens.value_or(0);
  if (asked > 0) chat.tokens_max = static_cast<std::uint32_t>(asked);
  if (tokens) chat.names.push_back({"max_tokens", "options.num_predict"});
  take_repeat_penalty(fields, chat);
  note_unknown_options(*options, chat);
  Json& given = body["options"];
  for (const std::string_view path : kOptions) {
    const std::string_view name = path.substr(kOptionPrefix.size());
    if (fields.find(name) != nullptr) chat.write(name, path, std::move(given[std::string(name)]));
  }
}

// "json", or a schema.
void take_format(Json& body, TranslatedChat& chat) {
  const auto found = body.find("format");
  if (found == body.end() || found->is_null() || *found == "") return;
  if (found->is_object()) {
    Json schema = {{"name", "format"}};
    schema["schema"] = std::move(*found);
    Json response_format = {{"type", "json_schema"}};
    response_format["json_schema"] = std::move(schema);
    chat.names.push_back({"response_format.json_schema.schema", "format"});
    chat.write("response_format", "format", std::move(response_format));
  } else if (*found == "json") {
    chat.write("response_format", "format", {{"type", "json_object"}});
  } else {
    refuse_type("format", *found, "\"json\" or a schema");
  }
}

void read_think(const Fields& fields, TranslatedChat& chat) {
  const Json* const think = fields.find("think");
  if (think == nullptr) return;
  if (think->is_boolean()) {
    chat.write("enable_thinking", "think", *think);
  } else if (think->is_string()) {
    chat.write("reasoning_effort", "think", *think);
  } else {
    refuse_type("think", *think, "true, false or a string");
  }
}

void refuse_images(const Fields& fields) {
  const Json* const images = fields.array("images");
  if (images == nullptr || images->empty()) return;
  const std::string path = fields.path_of("images");
  throw ApiError(400, fmt::format("{}: is not supported", path), path, "unsupported_parameter");
}

// Gives calls the ids that Ollama's messages lack, and results those of the calls of the last
// message that has any: the first that has their `tool_name`, else the first that has no result.
// Templates that print ids want nine letters or digits.
class CallIds {
 public:
  explicit CallIds(TranslationMemory& memory) : memory_(memory) {}

  void add(Json& message) {
    const auto calls = message.find("tool_calls");
    if (calls != message.end() && calls->is_array() && !calls->empty()) {
      open_.clear();
      by_name_.clear();
      by_id_.clear();
      for (Json& call : *calls) add_call(call);
    }
    const auto role = message.find("role");
    if (role == message.end() || *role != "tool") return;
    if (!message.contains("tool_call_id")) return add_result(message);
    // A result that names its call leaves the others to those that do not.
    const Json& id = message["tool_call_id"];
    const auto named = id.is_string() ? by_id_.find(id.get<std::string>()) : by_id_.end();
    if (named != by_id_.end()) close(named->second);
  }

 private:
  struct OpenCall {
    std::string id;
    std::string name;
  };

  // As chats write it. What is no call is refused there.
  void add_call(Json& call) {
    const auto function = call.is_object() ? call.find("function") : call.end();
    if (!call.is_object() || function == call.end() || !function->is_object()) return;
    memory_.add(kTranslatedBytes);
    const auto given = call.find("id");
    const bool has_id = given != call.end() && given->is_string();
    const auto name = function->find("name");
    OpenCall opened = {
        has_id ? given->get<std::string>() : fmt::format("call{:05}", calls_++),
        name != function->end() && name->is_string() ? name->get<std::string>() : std::string()};
    Json whole = {{"id", opened.id}, {"type", "function"}};
    whole["function"] = std::move(*function);
    call = std::move(whole);
    by_name_[opened.name].insert(order_);
    by_id_[opened.id] = order_;
    open_.emplace(order_++, std::move(opened));
  }

  void add_result(Json& message) {
    if (open_.empty()) return;
    memory_.add(kTranslatedBytes);
    std::uint64_t order = open_.begin()->first;
    for (const char* const member : {"tool_name", "name"}) {
      const auto name = message.find(member);
      if (name == message.end() || !name->is_string()) continue;
      const auto named = by_name_.find(name->get<std::string>());
      if (named != by_name_.end()) order = *named->second.begin();
      break;
    }
    message["tool_call_id"] = open_.at(order).id;
    close(order);
  }

  void close(std::uint64_t order) {
    by_id_.erase(open_.at(order).id);
    const auto found = by_name_.find(open_.at(order).name);
    found->second.erase(order);
    if (found->second.empty()) by_name_.erase(found);
    open_.erase(order);
  }

  TranslationMemory& memory_;
  std::uint32_t calls_ = 0;  // that got an id here
  std::uint64_t order_ = 0;
  // Calls of the last message that have no result, in order.
  std::map<std::uint64_t, OpenCall> open_;
  std::map<std::string, std::set<std::uint64_t>> by_name_;
  std::map<std::string, std::uint64_t> by_id_;
};

// Chats check the rest: their messages are Ollama's but for ids and images.
Json take_messages(Json& body, ReadingMemory* counted) {
  const Fields fields(body);
  TranslationMemory memory(counted);
  fields.require("messages");
  read_objects(fields, "messages");
  Json& messages = body["messages"];
  CallIds ids(memory);
  for (std::size_t i = 0; i < messages.size(); ++i) {
    refuse_images(Fields(messages[i], element_path("messages", i)));
    messages[i].erase("images");
    ids.add(messages[i]);
  }
  return std::move(messages);
}

void refuse_field(const Fields& fields, const char* name, std::string_view why) {
  const Json* const value = fields.find(name);
  if (value == nullptr || *value == false || value->empty() || *value == "") return;
  throw ApiError(400, fmt::format("{}: {}", name, why), name, "unsupported_parameter");
}

// Streams unless told otherwise.
TranslatedChat translate(Json& body) {
  const Fields fields(body);
  refuse_field(fields, "raw", "is not supported here; /v1/completions takes prompts as they are");
  refuse_field(fields, "context", "is not supported; /api/chat takes conversations");
  refuse_field(fields, "suffix", "is not supported");
  refuse_field(fields, "template", "is not supported; the server has a chat template");
  refuse_images(fields);
  TranslatedChat chat;
  move_other_fields(body, kOllamaFields, chat.body);
  chat.body["stream"] = fields.boolean("stream").value_or(true);
  // Ollama leaves the oldest messages out unless it is told otherwise.
  if (const auto truncates = fields.boolean("truncate")) {
    chat.write("truncation", "truncate", *truncates ? "auto" : "disabled");
  } else if (!chat.body.contains("truncation")) {
    chat.body["truncation"] = "auto";
  }
  take_options(body, chat);
  take_format(body, chat);
  read_think(fields, chat);
  return chat;
}

// The answer goes on from words of the assistant's that stand last.
bool ends_with_words(const Json& messages) {
  if (messages.empty()) return false;
  const Json& last = messages.back();
  const auto role = last.find("role");
  const auto content = last.find("content");
  const auto calls = last.find("tool_calls");
  const bool has_calls = calls != last.end() && !calls->empty();
  return role != last.end() && *role == "assistant" && !has_calls && content != last.end() &&
         content->is_string() && *content != "";
}

}  // namespace

LoadRequest load_request(const Json& body, bool is_chat) {
  if (!body.is_object()) return LoadRequest::kNone;
  const Fields fields(body);
  const Json* const asked = fields.find(is_chat ? "messages" : "prompt");
  const bool is_empty = asked == nullptr || *asked == "" || (asked->is_array() && asked->empty());
  if (!is_empty) return LoadRequest::kNone;
  const Json* const kept = fields.find("keep_alive");
  const bool unloads = kept != nullptr && (*kept == 0 || *kept == "0" || *kept == "0s");
  return unloads ? LoadRequest::kUnload : LoadRequest::kLoad;
}

TranslatedChat chat_of_chat(Json body, ReadingMemory* memory) {
  TranslatedChat chat = translate(body);
  chat.body["messages"] = take_messages(body, memory);
  if (ends_with_words(chat.body["messages"])) chat.body["continue_final_message"] = true;
  if (Fields(body).array("tools") != nullptr) chat.body["tools"] = std::move(body["tools"]);
  return chat;
}

TranslatedChat chat_of_generate(Json body, ReadingMemory* /*memory*/) {
  const Fields fields(body);
  fields.required_text("prompt");
  TranslatedChat chat = translate(body);
  chat.names.insert(chat.names.end(), {{"messages", "prompt"}, {"prompt", "prompt"}});
  Json messages = Json::array();
  if (fields.text("system")) {
    messages.push_back({{"role", "system"}, {"content", std::move(body["system"])}});
    chat.paths.messages.push_back({"system"});
  }
  chat.paths.messages.push_back({"prompt"});
  messages.push_back({{"role", "user"}, {"content", std::move(body["prompt"])}});
  chat.body["messages"] = std::move(messages);
  return chat;
}

}  // namespace pagoda::server::ollama
