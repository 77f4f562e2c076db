// Conversations that are longer than the context of stories260K, in the words of every API.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "server/story_fixture.h"

namespace pagoda::server {

inline constexpr const char* kChatApiPath = "/v1/chat/completions";

inline Json call_json(const std::string& id) {
  return {{"id", id}, {"type", "function"}, {"function", {{"name", "f"}, {"arguments", "{}"}}}};
}

// Turns of words; every second one with a call and its result, every third with parallel calls.
inline Json long_chat(int turns, int words = 2) {
  Json messages = Json::array({{{"role", "system"}, {"content", "You tell stories."}}});
  const auto say = [&](const char* role, int turn) {
    messages.push_back(
        {{"role", role},
         {"content",
          std::to_string(turn) + repeated(" Tom and Lily.", static_cast<std::size_t>(words))}});
  };
  for (int turn = 0; turn < turns; ++turn) {
    say("user", turn);
    const int calls = turn % 3 == 2 ? 2 : turn % 2;
    Json call = {{"role", "assistant"}, {"content", "I call."}, {"tool_calls", Json::array()}};
    for (int i = 0; i < calls; ++i) {
      call["tool_calls"].push_back(call_json("call" + std::to_string(turn) + std::to_string(i)));
    }
    if (calls > 0) messages.push_back(call);
    for (const Json& made : call["tool_calls"]) {
      messages.push_back({{"role", "tool"}, {"tool_call_id", made["id"]}, {"content", "Found."}});
    }
    say("assistant", turn);
  }
  messages.push_back({{"role", "user"}, {"content", "Tell me more."}});
  return messages;
}

// One question and many calls for it, as agents make them.
inline Json long_agent(int steps) {
  Json messages = Json::array({{{"role", "system"}, {"content", "You tell stories."}},
                               {{"role", "user"}, {"content", "Find Tom."}}});
  for (int step = 0; step < steps; ++step) {
    const std::string id = "call" + std::to_string(step);
    messages.push_back({{"role", "assistant"},
                        {"content", "I call."},
                        {"tool_calls", Json::array({call_json(id)})}});
    messages.push_back({{"role", "tool"},
                        {"tool_call_id", id},
                        {"content", std::to_string(step) + repeated(" Lily has a dog.", 2)}});
  }
  return messages;
}

inline Json some_tools() {
  return Json::array({{{"type", "function"},
                       {"function", {{"name", "f"}, {"parameters", {{"type", "object"}}}}}}});
}

// An API that chats are translated to, and the member of a body that has the conversation.
struct ChatApi {
  const char* name;
  const char* path;
  const char* member;
  Json (*body)(const Json& messages);
  std::string (*answer)(const Json& reply);
  std::uint64_t (*prompt_tokens)(const Json& reply);
};

inline Json long_chat_body(const Json& messages) {
  return {{"messages", messages}, {"temperature", 0}, {"max_tokens", 8}};
}

inline Json long_responses_body(const Json& messages) {
  Json items = Json::array();
  for (const Json& message : messages) {
    if (message["role"] == "tool") {
      items.push_back({{"type", "function_call_output"},
                       {"call_id", message["tool_call_id"]},
                       {"output", message["content"]}});
      continue;
    }
    items.push_back({{"role", message["role"]}, {"content", message["content"]}});
    for (const Json& call : message.value("tool_calls", Json::array())) {
      items.push_back(
          {{"type", "function_call"}, {"call_id", call["id"]}, {"name", "f"}, {"arguments", "{}"}});
    }
  }
  return {{"input", items}, {"temperature", 0}, {"max_output_tokens", 8}};
}

inline Json long_messages_body(const Json& messages) {
  Json turns = Json::array();
  Json body = {{"temperature", 0}, {"max_tokens", 8}};
  for (const Json& message : messages) {
    if (message["role"] == "system") {
      body["system"] = message["content"];
    } else if (message["role"] == "tool") {
      if (turns.back()["role"] != "user") {
        turns.push_back({{"role", "user"}, {"content", Json::array()}});
      }
      turns.back()["content"].push_back({{"type", "tool_result"},
                                         {"tool_use_id", message["tool_call_id"]},
                                         {"content", message["content"]}});
    } else {
      Json content = Json::array({{{"type", "text"}, {"text", message["content"]}}});
      for (const Json& call : message.value("tool_calls", Json::array())) {
        content.push_back(
            {{"type", "tool_use"}, {"id", call["id"]}, {"name", "f"}, {"input", Json::object()}});
      }
      turns.push_back({{"role", message["role"]}, {"content", content}});
    }
  }
  body["messages"] = turns;
  return body;
}

inline Json long_ollama_body(const Json& messages) {
  return {{"messages", messages},
          {"stream", false},
          {"options", {{"temperature", 0}, {"num_predict", 8}}}};
}

inline const std::vector<ChatApi>& all_apis() {
  static const std::vector<ChatApi> apis = {
      {"chat", kChatApiPath, "messages", long_chat_body,
       [](const Json& reply) {
         return reply["choices"][0]["message"]["content"].get<std::string>();
       },
       [](const Json& reply) { return reply["usage"]["prompt_tokens"].get<std::uint64_t>(); }},
      {"responses", "/v1/responses", "input", long_responses_body,
       [](const Json& reply) {
         return reply["output"].back()["content"][0]["text"].get<std::string>();
       },
       [](const Json& reply) { return reply["usage"]["input_tokens"].get<std::uint64_t>(); }},
      {"messages", "/v1/messages", "messages", long_messages_body,
       [](const Json& reply) { return reply["content"].back()["text"].get<std::string>(); },
       [](const Json& reply) {
         const Json& usage = reply["usage"];
         return usage["input_tokens"].get<std::uint64_t>() +
                usage["cache_read_input_tokens"].get<std::uint64_t>() +
                usage["cache_creation_input_tokens"].get<std::uint64_t>();
       }},
      {"ollama", "/api/chat", "messages", long_ollama_body,
       [](const Json& reply) { return reply["message"]["content"].get<std::string>(); },
       [](const Json& reply) { return reply["prompt_eval_count"].get<std::uint64_t>(); }}};
  return apis;
}

// The index in "messages[12]" or "input[3].content[0]".
inline std::size_t index_in(const Json& path) {
  const auto& text = path.get_ref<const std::string&>();
  return static_cast<std::size_t>(std::stoul(text.substr(text.find('[') + 1)));
}

// The body without what its reply says was dropped.
inline Json without_dropped(Json body, const char* member, const Json& truncated) {
  Json kept = Json::array();
  for (std::size_t i = 0; i < body[member].size(); ++i) {
    bool is_dropped = false;
    for (const Json& run : truncated["dropped"]) {
      is_dropped = is_dropped || (index_in(run["from"]) <= i && i <= index_in(run["to"]));
    }
    if (!is_dropped) kept.push_back(body[member][i]);
  }
  body[member] = kept;
  return body;
}

}  // namespace pagoda::server
