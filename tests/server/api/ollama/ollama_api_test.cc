// Ollama's API: bodies become chats, answers become lines of JSON.
#include <gtest/gtest.h>

#include "server/api/given_pieces.h"
#include "server/api/ollama/ollama_reply.h"
#include "server/api/ollama/ollama_request.h"
#include "server/story_fixture.h"

namespace pagoda::server {
namespace {

Json ollama_question() {
  return Json::parse(R"({"model": "stories", "stream": false,
    "options": {"temperature": 0, "num_predict": 8, "num_ctx": 4096},
    "messages": [{"role": "user", "content": "Tell me of Tom."}]})");
}

std::vector<Json> read_lines(std::string text) {
  std::vector<Json> lines;
  for (std::size_t end; (end = text.find('\n')) != std::string::npos; text.erase(0, end + 1)) {
    lines.push_back(Json::parse(text.substr(0, end)));
  }
  EXPECT_EQ(text, "");
  return lines;
}

TEST(OllamaRequest, BecomesAChat) {
  const Json body = Json::parse(R"({"model": "m", "think": "high", "format": "json",
    "keep_alive": "5m", "options": {"seed": 3, "stop": ["END"], "num_predict": -1},
    "tools": [{"type": "function", "function": {"name": "f"}}],
    "messages": [{"role": "user", "content": "hi", "images": []},
      {"role": "assistant", "content": "", "thinking": "hm",
       "tool_calls": [{"function": {"name": "f", "arguments": {"a": 1}}},
                      {"function": {"name": "f", "arguments": {}}}]},
      {"role": "tool", "content": "21", "tool_name": "f"},
      {"role": "tool", "content": "22", "tool_name": "f"}]})");
  const Json chat =
      Json::parse(R"({"stream": true, "truncation": "auto", "seed": 3, "stop": ["END"],
    "response_format": {"type": "json_object"}, "reasoning_effort": "high",
    "messages": [{"role": "user", "content": "hi"},
      {"role": "assistant", "content": "", "thinking": "hm",
       "tool_calls": [{"id": "call00000", "type": "function",
                       "function": {"name": "f", "arguments": {"a": 1}}},
                      {"id": "call00001", "type": "function",
                       "function": {"name": "f", "arguments": {}}}]},
      {"role": "tool", "content": "21", "tool_name": "f", "tool_call_id": "call00000"},
      {"role": "tool", "content": "22", "tool_name": "f", "tool_call_id": "call00001"}],
    "tools": [{"type": "function", "function": {"name": "f"}}]})");
  const TranslatedChat translated = ollama::chat_of_chat(body);
  EXPECT_EQ(translated.body, chat) << translated.body.dump(1);
  EXPECT_EQ(translated.tokens_max, INT32_MAX) << "what fits";
  EXPECT_FALSE(ollama::chat_of_chat({{"messages", Json::array()}}).tokens_max);
  const Json whole = {{"messages", Json::array()}, {"truncate", false}};
  EXPECT_EQ(ollama::chat_of_chat(whole).body["truncation"], "disabled");
  for (const Json& asked : {Json("disabled"), Json{{"type", "middle"}}}) {
    const Json truncated = {{"messages", Json::array()}, {"truncation", asked}};
    EXPECT_EQ(ollama::chat_of_chat(truncated).body["truncation"], asked) << "a field of chats";
  }
}

// As Ollama's own templates do, which leave the end of the last message away.
TEST(OllamaRequest, TheAnswerGoesOnFromTheAssistantsLastWords) {
  const auto goes_on = [](const char* last) {
    Json messages = {{{"role", "user"}, {"content", "hi"}}, Json::parse(last)};
    const Json chat = ollama::chat_of_chat({{"messages", messages}}).body;
    return chat.value("continue_final_message", false);
  };
  EXPECT_TRUE(goes_on(R"({"role": "assistant", "content": "Once upon"})"));
  EXPECT_FALSE(goes_on(R"({"role": "assistant", "content": ""})"));
  EXPECT_FALSE(goes_on(R"({"role": "assistant", "content": "I look",
    "tool_calls": [{"function": {"name": "f", "arguments": {}}}]})"));
  EXPECT_FALSE(goes_on(R"({"role": "user", "content": "Go on"})"));
}

constexpr BadBody kBadOllama[] = {
    {R"({"messages": 7})", "messages: "},
    {R"({"messages": [7]})", "messages[0]: "},
    {R"({"messages": [{"role": "nobody", "content": "a"}]})", "messages[0].role: "},
    {R"({"messages": [{"role": "user", "content": "a", "images": ["x"]}]})",
     "messages[0].images: "},
    {R"({"messages": [{"role": "tool", "content": "a"}]})", "messages[0]: "},
    {R"({"options": {"temperature": -1}})", "options.temperature: "},
    {R"({"options": {"num_predict": "8"}})", "options.num_predict: "},
    {R"({"options": {"repeat_penalty": -1.1}})", "options.repeat_penalty is "},
    {R"({"options": {"repeat_penalty": "1.1"}})", "options.repeat_penalty: "},
    {R"({"options": {"repeat_penalty": 1.1}, "repetition_penalty": 1.2})",
     "options.repeat_penalty: and repetition_penalty exclude"},
    {R"({"options": {"repeat_last_n": -2}})", "options.repeat_last_n: "},
    {R"({"options": {"mirostat": 2}})", "options.mirostat: "},
    {R"({"options": {"tfs_z": 0.5}})", "options.tfs_z: "},
    {R"({"options": {"stop": 7}})", "options.stop: "},
    {R"({"format": "yaml"})", "format: "},
    {R"({"think": 7})", "think: "},
    {R"({"stream": 7})", "stream: "},
};

TEST(Ollama, ErrorsAreAMessageThatNamesThePath) {
  StoryFixture fixture;
  for (const BadBody& bad : kBadOllama) {
    Json body = ollama_question();
    body.update(Json::parse(bad.change));
    const HttpReply reply = fixture.post("/api/chat", body);
    EXPECT_EQ(reply.status, 400) << bad.change;
    const std::string message = Json::parse(reply.body)["error"];
    EXPECT_TRUE(message.starts_with(bad.param)) << message;
  }
  for (const char* const field : {"raw", "template", "context", "suffix"}) {
    Json body = ollama_question();
    body[field] = {1};
    const std::string message = Json::parse(fixture.post("/api/chat", body).body)["error"];
    EXPECT_TRUE(message.starts_with(std::string(field) + ": ")) << message;
  }
  for (const char* const field : {"raw", "images", "suffix"}) {
    Json body = {{"prompt", "a"}};
    body[field] = field == std::string("raw") ? Json(true) : Json::array({"x"});
    const HttpReply reply = fixture.post("/api/generate", body);
    EXPECT_EQ(reply.status, 400) << field;
    EXPECT_TRUE(Json::parse(reply.body)["error"].get<std::string>().starts_with(field));
  }
}

// The chat that says the same is computed by the same code: its tokens and text are the oracle.
TEST(Ollama, AnswersAreThoseOfTheSameChat) {
  StoryFixture fixture;
  const Json chat = fixture.ask(
      "/v1/chat/completions", {{"max_tokens", 8},
                               {"temperature", 0},
                               {"messages", {{{"role", "user"}, {"content", "Tell me of Tom."}}}}});
  const Json& text = chat["choices"][0]["message"]["content"];
  const Json reply = fixture.ask("/api/chat", ollama_question());
  EXPECT_EQ(reply["message"]["content"], text);
  EXPECT_EQ(reply["message"]["role"], "assistant");
  EXPECT_EQ(reply["done"], true);
  EXPECT_EQ(reply["done_reason"], "length");
  EXPECT_EQ(reply["prompt_eval_count"], chat["usage"]["prompt_tokens"]);
  EXPECT_EQ(reply["eval_count"], 8);
  Json body = ollama_question();
  body.erase("messages");
  body["prompt"] = "Tell me of Tom.";
  EXPECT_EQ(fixture.ask("/api/generate", body)["response"], text);
  body.erase("stream");  // streams are the default
  std::string streamed_text;
  const std::vector<Json> lines = read_lines(fixture.post("/api/generate", body).body);
  for (const Json& line : lines) {
    streamed_text += line["response"];
    EXPECT_EQ(line["done"], &line == &lines.back());
  }
  EXPECT_EQ(streamed_text, text.get<std::string>());
  EXPECT_EQ(lines.back()["eval_count"], 8);
}

// Ollama's penalty is over the last `repeat_last_n` tokens, that of chats over all: both multiply
// or divide a logit once, however often its token came.
TEST(Ollama, ItsRepeatPenaltyIsTheRepetitionPenalty) {
  const auto options = [](Json options) {
    return ollama::chat_of_chat({{"messages", Json::array()}, {"options", std::move(options)}});
  };
  using Names = std::vector<std::string>;
  const TranslatedChat alone = options({{"repeat_penalty", 1.3}});
  EXPECT_EQ(alone.body["repetition_penalty"], 1.3);
  EXPECT_EQ(alone.ignored, Names());
  EXPECT_EQ(options({{"repeat_penalty", 1.3}, {"repeat_last_n", -1}}).ignored, Names()) << "all";
  const TranslatedChat last = options({{"repeat_penalty", 1.3}, {"repeat_last_n", 64}});
  EXPECT_EQ(last.body["repetition_penalty"], 1.3);
  EXPECT_EQ(last.ignored, Names{"options.repeat_last_n"});
  const TranslatedChat none = options({{"repeat_penalty", 1.3}, {"repeat_last_n", 0}});
  EXPECT_FALSE(none.body.contains("repetition_penalty"));
  StoryFixture fixture;
  const Json chat = fixture.ask(
      "/v1/chat/completions", {{"max_tokens", 8},
                               {"temperature", 0},
                               {"repetition_penalty", 1.9},
                               {"messages", {{{"role", "user"}, {"content", "Tell me of Tom."}}}}});
  Json body = ollama_question();
  const Json plain = fixture.ask("/api/chat", body)["message"]["content"];
  body["options"]["repeat_penalty"] = 1.9;
  const Json penalised = fixture.ask("/api/chat", body)["message"]["content"];
  EXPECT_EQ(penalised, chat["choices"][0]["message"]["content"]);
  EXPECT_NE(penalised, plain);
}

// curl -d says that a body is a form, and clients of Ollama's often say nothing. A browser sends
// either for a page of any origin without asking first.
TEST(Ollama, TakesWhatIsNotSaidToBeJsonButNotFromPages) {
  StoryFixture fixture;
  for (const char* const type : {"", "application/x-www-form-urlencoded", "text/plain;a=b"}) {
    for (const char* const path : {"/api/chat", "/api/generate", "/api/show"}) {
      HttpRequest request = {.method = "POST",
                             .path = path,
                             .content_type = type,
                             .body = R"({"model": "stories"})",
                             .host = "localhost"};
      EXPECT_EQ(fixture.send(request).status, 200) << path << type;
      request.origin = "http://localhost";
      EXPECT_EQ(fixture.send(request).status, 415) << "the server's own page";
      request.origin = "null";
      EXPECT_EQ(fixture.send(request).status, 403) << "another's page";
    }
    const HttpRequest chat = {
        .method = "POST", .path = "/v1/chat/completions", .content_type = type, .body = "{}"};
    EXPECT_EQ(fixture.send(chat).status, 415) << type;
  }
  for (const char* const type : {"multipart/form-data", "application/xml", "text/plaintext"}) {
    const HttpRequest other = {
        .method = "POST", .path = "/api/show", .content_type = type, .body = "{}"};
    EXPECT_EQ(fixture.send(other).status, 415) << type;
  }
}

TEST(OllamaRequest, OptionsThatNobodyKnowsAreNamedForTheLog) {
  const Json options = Json::parse(R"({"num_ctx": 4096, "num_gpu": 1, "mirostat_eta": 0.1,
    "numa": false, "foo": 1, "repetition_penalty": 1.1, "not a name": 2, "bar": null})");
  const TranslatedChat chat =
      ollama::chat_of_chat({{"messages", Json::array()}, {"options", options}});
  EXPECT_EQ(chat.ignored, (std::vector<std::string>{"options.foo", "options.repetition_penalty"}));
  Json many = Json::object();
  for (int i = 0; i < 20; ++i) many["field_" + std::to_string(i)] = i;
  EXPECT_EQ(ollama::chat_of_generate({{"prompt", "a"}, {"options", many}}).ignored.size(), 8u);
}

TEST(Ollama, ModelsAreListedAndShown) {
  StoryFixture fixture;
  const Json listed = Json::parse(fixture.get("/api/tags").body)["models"][0];
  EXPECT_EQ(listed["name"], "stories:latest");
  EXPECT_EQ(listed["digest"], "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08")
      << "the SHA-256 of the fixture's fingerprint, as sha256sum prints it";
  for (const char* const field : {"model", "name"}) {
    for (const char* const name : {"stories", "stories:latest", "alias:latest"}) {
      EXPECT_EQ(fixture.ask("/api/show", {{field, name}})["capabilities"][0], "completion") << name;
    }
    for (const char* const name :
         {"other", "other:latest", "stories:8b", "stories:latest:latest"}) {
      EXPECT_EQ(fixture.post("/api/show", {{field, name}}).status, 404) << name;
    }
  }
  EXPECT_EQ(fixture.post("/api/show", Json::object()).status, 400);
  Json tagged = ollama_question();
  tagged["model"] = "stories:latest";
  EXPECT_EQ(fixture.post("/api/chat", tagged).status, 200);
  EXPECT_EQ(fixture.post("/v1/chat/completions", tagged).status, 404) << "a tag is Ollama's";
  const Json version = Json::parse(fixture.get("/api/version").body);
  EXPECT_EQ(version["version"], "0.12.0") << "clients ask for a least one";
  EXPECT_EQ(version["pagoda"], "1.2.3");
}

TEST(OllamaReply, CallsComeWhole) {
  const auto writer = ollama::make_ollama_writer(true);
  std::string out;
  writer->begin(given_facts(), out);
  const std::vector<Piece> pieces = answer_with_calls();
  for (const Piece& piece : pieces) writer->add(piece, out);
  writer->end(given_facts(), pieces.back(), out);
  std::string content;
  std::string thinking;
  Json calls = Json::array();
  const auto lines = read_lines(out);
  EXPECT_EQ(lines.back()["message"], Json::parse(R"({"role": "assistant", "content": ""})"));
  for (const Json& line : lines) {
    EXPECT_EQ(line["done"], &line == &lines.back());
    content += line["message"]["content"];
    thinking += line["message"].value("thinking", "");
    for (const Json& call : line["message"].value("tool_calls", Json::array())) {
      calls.push_back(call["function"]);
    }
  }
  EXPECT_EQ(content, "Let me see.");
  EXPECT_EQ(thinking, "Hmm \"so\".");
  EXPECT_EQ(calls, Json::parse(R"([{"name": "get_weather", "arguments": {"city": "Rome"}},
                                   {"name": "now", "arguments": {}}])"));
}

}  // namespace
}  // namespace pagoda::server
