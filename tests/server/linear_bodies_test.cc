// A body is read in time that grows as the body does, whatever it is full of.
#include <gtest/gtest.h>

#include <algorithm>
#include <ctime>
#include <functional>
#include <ostream>
#include <string>
#include <vector>

#include "server/story_fixture.h"

namespace pagoda::server {
namespace {

constexpr const char* kChat = "/v1/chat/completions";

struct FullBody {
  const char* name;
  const char* path;
  std::size_t count;                      // of what it is full of
  std::function<Json(std::size_t)> make;  // for a count
};

void PrintTo(const FullBody& body, std::ostream* out) { *out << body.name; }

Json list_of(std::size_t count, const std::function<Json(std::size_t)>& make) {
  Json list = Json::array();
  for (std::size_t i = 0; i < count; ++i) list.push_back(make(i));
  return list;
}

// Members behind all others: no key is compared with those before it.
Json object_of(std::size_t count, const Json& value) {
  Json object = Json::object();
  for (std::size_t i = 0; i < count; ++i) {
    object.get_ref<Json::object_t&>().emplace_back("k" + std::to_string(i), value);
  }
  return object;
}

std::string name_of(std::size_t i) { return "f" + std::to_string(i); }

Json user(const char* content) { return {{"role", "user"}, {"content", content}}; }

Json function_named(const std::string& name) {
  return {{"type", "function"}, {"function", {{"name", name}}}};
}

Json chat_of(Json messages) { return {{"messages", std::move(messages)}, {"max_tokens", 1}}; }

Json chat_with(const char* field, Json value) {
  Json body = chat_of({user("Once")});
  body[field] = std::move(value);
  return body;
}

Json schema_chat(Json schema) {
  return chat_with("response_format",
                   {{"type", "json_schema"}, {"json_schema", {{"name", "x"}, {"schema", schema}}}});
}

Json allowed_tools(std::size_t count) {
  const auto named = [](std::size_t i) { return function_named(name_of(i)); };
  Json body = chat_with("tools", list_of(count, named));
  body["tool_choice"] = {{"type", "allowed_tools"},
                         {"allowed_tools", {{"mode", "auto"}, {"tools", list_of(count, named)}}}};
  return body;
}

Json call_of(std::size_t i) {
  return {
      {"id", name_of(i)}, {"type", "function"}, {"function", {{"name", "f"}, {"arguments", "{}"}}}};
}

Json result_of(std::size_t i) {
  return {{"role", "tool"}, {"tool_call_id", name_of(i)}, {"content", "r"}};
}

// One answer with all calls, and the results from the last to the first.
Json calls_chat(std::size_t count) {
  Json messages = {user("Once"), {{"role", "assistant"}, {"tool_calls", list_of(count, call_of)}}};
  for (std::size_t i = count; i-- > 0;) messages.push_back(result_of(i));
  return chat_of(std::move(messages));
}

Json response_calls(std::size_t count) {
  Json items = list_of(count, [](std::size_t i) {
    return Json{
        {"type", "function_call"}, {"call_id", name_of(i)}, {"name", "f"}, {"arguments", "{}"}};
  });
  for (std::size_t i = count; i-- > 0;) {
    items.push_back({{"type", "function_call_output"}, {"call_id", name_of(i)}, {"output", "r"}});
  }
  return {{"input", std::move(items)}, {"max_output_tokens", 16}};
}

Json message_calls(std::size_t count) {
  const Json uses = list_of(count, [](std::size_t i) {
    return Json{{"type", "tool_use"}, {"id", name_of(i)}, {"name", "f"}, {"input", Json::object()}};
  });
  const Json results = list_of(count, [&](std::size_t i) {
    return Json{{"type", "tool_result"}, {"tool_use_id", name_of(count - 1 - i)}, {"content", "r"}};
  });
  return {{"model", "stories"},
          {"max_tokens", 1},
          {"messages",
           {user("Once"),
            {{"role", "assistant"}, {"content", uses}},
            {{"role", "user"}, {"content", results}}}}};
}

Json ollama_calls(std::size_t count) {
  Json messages = {user("Once")};
  messages.push_back({{"role", "assistant"}, {"content", ""}, {"tool_calls", Json::array()}});
  for (std::size_t i = 0; i < count; ++i) {
    messages[1]["tool_calls"].push_back(
        {{"function", {{"name", name_of(i)}, {"arguments", Json::object()}}}});
  }
  for (std::size_t i = count; i-- > 0;) {
    messages.push_back({{"role", "tool"}, {"tool_name", name_of(i)}, {"content", "r"}});
  }
  return {{"model", "stories"}, {"stream", false}, {"messages", std::move(messages)}};
}

std::string alternatives(std::size_t count, const char* between, const char* quote) {
  std::string text;
  for (std::size_t i = 0; i < count; ++i) {
    text += (i == 0 ? "" : between) + (quote + name_of(i)) + quote;
  }
  return text;
}

Json marked_parts(std::size_t count, const char* name, const Json& mark) {
  const Json part = {{"type", "text"}, {"text", "a"}, {name, mark}};
  return chat_of(
      {{{"role", "user"}, {"content", list_of(count, [&](std::size_t) { return part; })}}});
}

const Json kString = {{"type", "string"}};

const std::vector<FullBody> kFullBodies = {
    {"Messages", kChat, 20'000,
     [](std::size_t n) { return chat_of(list_of(n, [](std::size_t) { return user("a"); })); }},
    {"Systems", kChat, 20'000,
     [](std::size_t n) {
       return chat_of(list_of(n, [](std::size_t i) {
         return Json{{"role", i % 2 == 0 ? "system" : "user"}, {"content", "a"}};
       }));
     }},
    {"MarkedParts", kChat, 20'000,
     [](std::size_t n) {
       return marked_parts(n, "cache_control", {{"type", "ephemeral"}});
     }},
    {"Calls", kChat, 10'000, calls_chat},
    {"CallArguments", kChat, 20'000,
     [](std::size_t n) {
       Json call = call_of(1);
       call["function"]["arguments"] = object_of(n, 1).dump();
       return chat_of({user("Once"), {{"role", "assistant"}, {"tool_calls", {call}}}});
     }},
    {"Tools", kChat, 20'000,
     [](std::size_t n) {
       return chat_with("tools",
                        list_of(n, [](std::size_t i) { return function_named(name_of(i)); }));
     }},
    {"AllowedTools", kChat, 10'000, allowed_tools},
    {"ToolProperties", kChat, 20'000,
     [](std::size_t n) {
       Json tool = function_named("f");
       tool["function"]["parameters"] = {{"type", "object"}, {"properties", object_of(n, kString)}};
       return chat_with("tools", {tool});
     }},
    {"TemplateArguments", kChat, 20'000,
     [](std::size_t n) { return chat_with("chat_template_kwargs", object_of(n, 1)); }},
    {"Metadata", kChat, 20'000,
     [](std::size_t n) { return chat_with("metadata", object_of(n, "a")); }},
    {"UnknownFields", kChat, 20'000,
     [](std::size_t n) {
       Json body = object_of(n, 1);
       body["messages"] = {user("Once")};
       body["max_tokens"] = 1;
       return body;
     }},
    {"SchemaProperties", kChat, 10'000,
     [](std::size_t n) {
       return schema_chat({{"type", "object"}, {"properties", object_of(n, kString)}});
     }},
    {"SchemaEnum", kChat, 10'000,
     [](std::size_t n) {
       return schema_chat({{"enum", list_of(n, [](std::size_t i) { return name_of(i); })}});
     }},
    {"SchemaAlternatives", kChat, 4'000,
     [](std::size_t n) {
       return schema_chat({{"anyOf", list_of(n, [](std::size_t i) {
                              return Json{{"const", name_of(i)}};
                            })}});
     }},
    {"Choices", kCompletionsPath, 10'000,
     [](std::size_t n) {
       return Json{{"prompt", "Once"},
                   {"max_tokens", 1},
                   {"structured_outputs",
                    {{"choice", list_of(n, [](std::size_t i) { return name_of(i); })}}}};
     }},
    {"Expression", kCompletionsPath, 10'000,
     [](std::size_t n) {
       return Json{{"prompt", "Once"},
                   {"max_tokens", 1},
                   {"structured_outputs", {{"regex", alternatives(n, "|", "")}}}};
     }},
    {"Grammar", kCompletionsPath, 10'000,
     [](std::size_t n) {
       return Json{{"prompt", "Once"},
                   {"max_tokens", 1},
                   {"grammar", "root ::= " + alternatives(n, " | ", "\"")}};
     }},
    {"Prompts", kCompletionsPath, 20'000,
     [](std::size_t n) {
       return Json{{"prompt", list_of(n, [](std::size_t) { return "a"; })}, {"max_tokens", 1}};
     }},
    {"ResponseItems", "/v1/responses", 10'000, response_calls},
    {"ResponseTools", "/v1/responses", 20'000,
     [](std::size_t n) {
       return Json{{"input", "Once"},
                   {"max_output_tokens", 16},
                   {"tools", list_of(n, [](std::size_t i) {
                      return Json{{"type", "tool_" + name_of(i)}};
                    })}};
     }},
    {"MessageBlocks", "/v1/messages", 10'000, message_calls},
    {"CountedBlocks", "/v1/messages/count_tokens", 10'000, message_calls},
    {"OllamaCalls", "/api/chat", 10'000, ollama_calls},
    {"Explained", "/cache/explain", 20'000,
     [](std::size_t n) {
       return Json{{"prompt", std::string(n, 'a')}};
     }},
    {"Words", "/tokenize", 20'000,
     [](std::size_t n) {
       return Json{{"prompt", std::string(4 * n, ' ') + "a"}};
     }},
    {"CombiningMarks", "/tokenize", 5'000,
     [](std::size_t n) {
       std::string marks = "a";
       for (std::size_t i = 0; i < n; ++i) marks += "\xcc\x81\xcc\xa3";
       return Json{{"prompt", marks}};
     }},
};

class LinearBodies : public testing::TestWithParam<FullBody> {
 protected:
  // The server's threads are this program's: other programs do not matter.
  static double cpu_seconds() {
    timespec now = {};
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
  }

  static double seconds_for(const FullBody& body, std::size_t count) {
    static StoryFixture fixture;
    const std::string text = body.make(count).dump();
    const double begin = cpu_seconds();
    const HttpReply reply = fixture.post_text(body.path, text);
    const double seconds = cpu_seconds() - begin;
    EXPECT_LT(reply.status, 500) << reply.body;
    return seconds;
  }
};

TEST_P(LinearBodies, FourTimesAsMuchIsReadInAboutFourTimesTheTime) {
  const FullBody& body = GetParam();
  // What a request costs besides its size would hide the ratio; sixteen times is quadratic.
  constexpr double kLeastSeconds = 0.005;
  constexpr double kTimesMost = 9;
  double times = 0;
  for (int i = 0; i < 3; ++i) {
    const double less = std::max(seconds_for(body, body.count), kLeastSeconds);
    const double more = seconds_for(body, 4 * body.count);
    times = i == 0 ? more / less : std::min(times, more / less);
    if (times < kTimesMost) break;
  }
  EXPECT_LT(times, kTimesMost);
}

INSTANTIATE_TEST_SUITE_P(Bodies, LinearBodies, testing::ValuesIn(kFullBodies),
                         [](const auto& one) { return std::string(one.param.name); });

}  // namespace
}  // namespace pagoda::server
