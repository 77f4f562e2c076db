#include "server/api/chat_history.h"

#include <fmt/format.h>

#include <utility>

#include "server/api/cache_marks.h"
#include "server/api_error.h"

namespace pagoda::server {
namespace {

constexpr const char* kReasoning = "reasoning_content";

// Templates that know nothing of parts see the plain string that most messages are.
void simplify_content(Json& message) {
  Json& content = message["content"];
  if (!content.is_array()) return;
  if (content.size() == 1) {
    Json part = std::move(content.front());
    content = std::move(part["text"]);
    copy_mark(part, message);  // the last: it may move the message's members
  } else if (content.empty()) {
    content = message.contains("tool_calls") ? Json(nullptr) : Json("");
  }
}

}  // namespace

void ChatHistory::open(std::string_view role, bool joins, const std::string& path) {
  if (joins && last_role() == role) {
    if (path != places_.back().path) places_.back().last = path;
    return;
  }
  memory_.add(kTranslatedBytes + sizeof(MessagePlace));
  places_.push_back({path});
  messages_.push_back({{"role", role}, {"content", Json::array()}});
}

void ChatHistory::add_text(Json text) {
  memory_.add(kTranslatedBytes);
  messages_.back()["content"].push_back({{"type", "text"}, {"text", std::move(text)}});
}

void ChatHistory::add_reasoning(std::string_view text) {
  memory_.add(text.size());
  Json& message = messages_.back();
  if (!message.contains(kReasoning)) message[kReasoning] = "";
  message[kReasoning].get_ref<std::string&>() += text;
}

void ChatHistory::add_call(std::string_view id, std::string_view name, Json arguments,
                           const std::string& path) {
  memory_.add(kTranslatedBytes + 2 * id.size() + name.size() + path.size());
  places_.back().calls.push_back(path);
  calls_.emplace(id);
  Json function = {{"name", name}};
  function["arguments"] = std::move(arguments);
  Json call = {{"id", id}, {"type", "function"}};
  call["function"] = std::move(function);
  messages_.back()["tool_calls"].push_back(std::move(call));
}

void ChatHistory::add_result(std::string_view id, const std::string& id_path, Json content,
                             const std::string& path) {
  if (!calls_.contains(id)) {
    throw ApiError(400, fmt::format("{}: no call before it has the id \"{}\"", id_path, id),
                   id_path);
  }
  memory_.add(kTranslatedBytes + sizeof(MessagePlace) + id.size());
  places_.push_back({path});
  Json message = {{"role", "tool"}, {"tool_call_id", id}};
  message["content"] = std::move(content);
  messages_.push_back(std::move(message));
}

void ChatHistory::mark(const Json& block) {
  if (messages_.empty()) return;
  Json& message = messages_.back();
  Json& content = message["content"];
  const bool is_text = content.is_array() && !content.empty() && !message.contains("tool_calls") &&
                       !message.contains("tool_call_id");
  copy_mark(block, is_text ? content.back() : message);
}

bool ChatHistory::has_only_reasoning() const {
  return last_role() == "assistant" && !last_has_calls() && messages_.back()["content"].empty();
}

std::string_view ChatHistory::last_role() const {
  if (messages_.empty()) return {};
  return messages_.back()["role"].get_ref<const std::string&>();
}

bool ChatHistory::last_has_calls() const {
  return !messages_.empty() && messages_.back().contains("tool_calls");
}

Json ChatHistory::take() {
  for (Json& message : messages_) simplify_content(message);
  return std::exchange(messages_, Json::array());
}

}  // namespace pagoda::server
