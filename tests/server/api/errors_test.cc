// Every wrong request gets a status and names its field; none reaches the engine.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <filesystem>
#include <fstream>

#include "server/story_fixture.h"

namespace pagoda::server {
namespace {

using testing::HasSubstr;

StoryFixture& errors_fixture() {
  static StoryFixture fixture;
  return fixture;
}

struct Wrong {
  const char* field;  // the field with its value, put into a valid request
  const char* value;
  const char* param;
};

void PrintTo(const Wrong& wrong, std::ostream* out) { *out << wrong.field << " = " << wrong.value; }

Json error_of(const HttpReply& reply, int status) {
  EXPECT_EQ(reply.status, status) << reply.body;
  const Json body = Json::parse(reply.body);
  EXPECT_TRUE(body.contains("error")) << reply.body;
  return body.value("error", Json::object());
}

class WrongField : public testing::TestWithParam<Wrong> {};

TEST_P(WrongField, IsNamed) {
  const Wrong& wrong = GetParam();
  for (const bool chat : {false, true}) {
    Json body = chat ? Json{{"messages", {{{"role", "user"}, {"content", "Hi"}}}}}
                     : Json{{"prompt", "Once"}};
    body["max_tokens"] = 2;
    body[wrong.field] = Json::parse(wrong.value);
    const HttpReply reply =
        errors_fixture().post(chat ? "/v1/chat/completions" : "/v1/completions", body);
    const Json error = error_of(reply, 400);
    EXPECT_EQ(error["param"], wrong.param) << reply.body;
    EXPECT_EQ(error["type"], "invalid_request_error");
    EXPECT_THAT(error["message"].get<std::string>(), HasSubstr(wrong.field));
  }
}

INSTANTIATE_TEST_SUITE_P(
    Shared, WrongField,
    testing::Values(
        Wrong{"temperature", "-1", "temperature"}, Wrong{"temperature", "\"1\"", "temperature"},
        Wrong{"top_p", "0", "top_p"}, Wrong{"top_p", "1.5", "top_p"}, Wrong{"top_k", "-2", "top_k"},
        Wrong{"top_k", "1.5", "top_k"}, Wrong{"min_p", "2", "min_p"},
        Wrong{"repetition_penalty", "0", "repetition_penalty"},
        Wrong{"presence_penalty", "3", "presence_penalty"},
        Wrong{"frequency_penalty", "-3", "frequency_penalty"}, Wrong{"n", "0", "n"},
        Wrong{"n", "9", "n"}, Wrong{"n", "true", "n"}, Wrong{"seed", "1.5", "seed"},
        Wrong{"seed", "18446744073709551615", "seed"}, Wrong{"max_tokens", "-1", "max_tokens"},
        Wrong{"max_tokens", "99999", "max_tokens"}, Wrong{"min_tokens", "3", "min_tokens"},
        Wrong{"stop", "1", "stop"}, Wrong{"stop", "[\"a\",1]", "stop[1]"},
        Wrong{"stop", "[\"\"]", "stop"}, Wrong{"stop_token_ids", "[-1]", "stop_token_ids[0]"},
        Wrong{"stop_token_ids", "[1,\"x\"]", "stop_token_ids[1]"},
        Wrong{"logit_bias", "{\"x\":1}", "logit_bias"},
        Wrong{"logit_bias", "{\"5\":101}", "logit_bias.5"}, Wrong{"logit_bias", "[]", "logit_bias"},
        Wrong{"stream", "1", "stream"},
        Wrong{"stream_options", "{\"include_usage\":true}", "stream_options"},
        Wrong{"priority", "\"high\"", "priority"}, Wrong{"cache_salt", "\"\"", "cache_salt"},
        Wrong{"cache_salt", "5", "cache_salt"}, Wrong{"user", "5", "user"},
        Wrong{"retain", "5", "retain"}, Wrong{"retain", "{}", "retain.seconds"},
        Wrong{"retain", "{\"seconds\":0}", "retain.seconds"},
        Wrong{"retain", "{\"seconds\":1,\"priority\":101}", "retain.priority"},
        Wrong{"retain", "{\"seconds\":1,\"upto\":\"all\"}", "retain.upto"},
        Wrong{"retain", "{\"seconds\":1,\"upto\":0}", "retain.upto"},
        Wrong{"ignore_eos", "0", "ignore_eos"},
        Wrong{"return_token_ids", "\"yes\"", "return_token_ids"},
        Wrong{"prompt_logprobs", "21", "prompt_logprobs"}));

INSTANTIATE_TEST_SUITE_P(
    Unsupported, WrongField,
    testing::Values(
        Wrong{"response_format", "{\"type\":\"structural_tag\"}", "response_format.type"},
        Wrong{"response_format", "{}", "response_format.type"},
        Wrong{"tool_choice", "\"required\"", "tool_choice"},
        Wrong{"tool_choice", "5", "tool_choice"},
        Wrong{"modalities", "[\"text\",\"audio\"]", "modalities[1]"},
        Wrong{"audio", "{\"voice\":\"a\"}", "audio"}, Wrong{"suffix", "\"end\"", "suffix"},
        Wrong{"use_beam_search", "true", "use_beam_search"}, Wrong{"best_of", "2", "best_of"},
        Wrong{"repeat_penalty", "1.1", "repeat_penalty"}, Wrong{"functions", "[{}]", "functions"}));

TEST(Errors, AFieldThatHasAnotherNameHereIsAnsweredWithIt) {
  const Json error = error_of(
      errors_fixture().post("/v1/completions", {{"prompt", "Once"}, {"repeat_penalty", 1.1}}), 400);
  EXPECT_EQ(error["message"],
            "repeat_penalty: is not supported; its name here is repetition_penalty");
}

TEST(Errors, OfMessagesAndToolsNameTheirPath) {
  const struct {
    const char* change;
    const char* param;
  } kCases[] = {
      {R"({"messages": [{"role": "user"}]})", "messages[0].content"},
      {R"({"messages": [{"role": "system", "content": null}]})", "messages[0].content"},
      {R"({"messages": [{"role": "assistant", "content": null, "function_call": {"name": "f"}}]})",
       "messages[0].function_call"},
      {R"({"tools": [{"type": "custom", "custom": {"name": "f"}}]})", "tools[0].type"},
      {R"({"tools": [{"name": "f", "input_schema": {}}]})", "tools[0].function"},
      {R"({"grammar": "root ::= \"a\"", "grammar_lazy": true})", "grammar_lazy"},
  };
  for (const auto& one : kCases) {
    Json body = {{"messages", {{{"role", "user"}, {"content", "Once"}}}}, {"max_tokens", 1}};
    body.update(Json::parse(one.change));
    const Json error = error_of(errors_fixture().post("/v1/chat/completions", body), 400);
    EXPECT_EQ(error["param"], one.param) << one.change << error.dump();
  }
}

TEST(Errors, AnIntegerMayBeWrittenAsAFloat) {
  const auto tokens = [](const char* value) {
    return errors_fixture().post("/v1/completions",
                                 {{"prompt", "Once"}, {"max_tokens", Json::parse(value)}});
  };
  EXPECT_EQ(Json::parse(tokens("2.0").body)["usage"]["completion_tokens"], 2);
  for (const char* const wrong : {"2.5", "1e300", "-1.0"}) {
    EXPECT_EQ(tokens(wrong).status, 400) << wrong;
  }
}

TEST(Errors, WhatAsksForNothingIsNoUnsupportedField) {
  const Json reply = errors_fixture().complete({{"prompt", "Once"},
                                                {"max_tokens", 1},
                                                {"suffix", nullptr},
                                                {"guided_json", nullptr},
                                                {"use_beam_search", false},
                                                {"functions", Json::array()},
                                                {"best_of", 1},
                                                {"repeat_penalty", 1.0},
                                                {"tool_choice", "none"},
                                                {"response_format", {{"type", "text"}}},
                                                {"modalities", {"text"}},
                                                {"a_field_from_the_future", {{"x", 1}}}});
  EXPECT_EQ(reply["usage"]["completion_tokens"], 1);
}

// Agents shorten a conversation by as much as it is too long. A text is counted to an end.
TEST(Errors, ALongPromptIsToldWithItsLength) {
  const std::uint64_t context = errors_fixture().engine().limits().context_tokens;
  const auto told = [&](const Json& prompt) -> std::string {
    return error_of(errors_fixture().post("/v1/completions", {{"prompt", prompt}}), 400)["message"];
  };
  const std::string holds = fmt::format("the context holds {} including", context);
  EXPECT_THAT(told(std::vector<int>(context + 7, 5)),
              testing::StartsWith(fmt::format("prompt: has {} tokens, {}", context + 7, holds)));
  std::string text;
  for (std::uint64_t i = 0; i <= context; ++i) text += "a b ";
  const auto count = [](const char* member, const Json& value) {
    const HttpReply reply = errors_fixture().post("/tokenize", {{member, value}});
    return Json::parse(reply.body)["count"].get<std::uint64_t>();
  };
  EXPECT_THAT(told(text), testing::StartsWith(fmt::format("prompt: has {} tokens, {}",
                                                          count("prompt", text), holds)));
  const Json chat = Json::array({{{"role", "user"}, {"content", text}}});
  const HttpReply refused = errors_fixture().post("/v1/chat/completions", {{"messages", chat}});
  EXPECT_THAT(error_of(refused, 400)["message"].get<std::string>(),
              testing::StartsWith(
                  fmt::format("messages: has {} tokens, {}", count("messages", chat), holds)));
  for (std::string more = text; text.size() < (1u << 21);) text += more;
  EXPECT_THAT(told(text), testing::StartsWith(fmt::format("prompt: has more than {} tokens, {}",
                                                          context - 1, holds)));
}

// The limit is the same, however far a request exceeds it.
TEST(Errors, RangesAgreeWhereverTheyAreChecked) {
  const auto told = [](const char* field, const char* value) {
    const Json body = {{"prompt", "Once"}, {"max_tokens", 2}, {field, Json::parse(value)}};
    const Json error = error_of(errors_fixture().post("/v1/completions", body), 400);
    const std::string message = error["message"];
    return message.substr(std::min(message.find("expected"), message.size()));
  };
  for (const char* const value : {"-1", "0", "9", "129", "4294967297"}) {
    EXPECT_EQ(told("n", value), "expected 1 to 8, by the server option max_num_seqs") << value;
  }
  for (const auto& [field, values] : std::vector<std::pair<const char*, std::vector<const char*>>>{
           {"top_p", {"-1", "0", "1.5", "1e30"}},
           {"repetition_penalty", {"-1", "0"}},
           {"temperature", {"-1", "101"}},
           {"min_p", {"-1", "1.5"}},
           {"presence_penalty", {"-3", "3"}}}) {
    for (const char* const value : values) EXPECT_EQ(told(field, value), told(field, values[0]));
    EXPECT_THAT(told(field, values[0]), testing::StartsWith("expected ")) << field;
  }
}

TEST(Errors, ToolsAndTheirLikeAreObjects) {
  const Json message = {{"role", "user"}, {"content", "Hi"}};
  const std::vector<std::array<const char*, 3>> wrong = {
      {"tools", "[5]", "tools[0]"},
      {"tools", "[{}, \"a\"]", "tools[1]"},
      {"tools", "[null]", "tools[0]"},
      {"tools", "{}", "tools"},
      {"tools", "[{\"type\": 5}]", "tools[0].type"},
      {"tools", "[{\"type\": \"function\", \"function\": 5}]", "tools[0].function"},
      {"tools", "[{\"function\": {}}]", "tools[0].function.name"},
      {"tools", "[{\"function\": {\"name\": 5}}]", "tools[0].function.name"},
      {"documents", "[[]]", "documents[0]"}};
  for (const auto& [field, value, param] : wrong) {
    const Json body = {{"messages", {message}}, {field, Json::parse(value)}};
    for (const char* const path : {"/v1/chat/completions", "/v1/chat/completions/render"}) {
      EXPECT_EQ(error_of(errors_fixture().post(path, body), 400)["param"], param) << value;
    }
  }
  Json calls = {{"role", "assistant"}, {"tool_calls", {5}}};
  EXPECT_EQ(
      error_of(errors_fixture().post("/v1/chat/completions", {{"messages", {message, calls}}}),
               400)["param"],
      "messages[1].tool_calls[0]");
  const Json good = {{"messages", {message}},
                     {"max_tokens", 1},
                     {"tools", {{{"type", "function"}, {"function", {{"name", "f"}}}}}}};
  EXPECT_EQ(errors_fixture().post("/v1/chat/completions", good).status, 200);
}

TEST(Errors, MessagesAreNamedByTheirPath) {
  const std::vector<std::pair<const char*, const char*>> wrong = {
      {"[]", "messages"},
      {"\"hi\"", "messages"},
      {"[1]", "messages[0]"},
      {"[{\"content\":\"a\"}]", "messages[0].role"},
      {"[{\"role\":1}]", "messages[0].role"},
      {"[{\"role\":\"user\",\"content\":5}]", "messages[0].content"},
      {"[{\"role\":\"user\",\"content\":[5]}]", "messages[0].content[0]"},
      {"[{\"role\":\"user\",\"content\":[{\"type\":\"text\",\"text\":7}]}]",
       "messages[0].content[0].text"},
      {"[{\"role\":\"user\",\"content\":\"a\"},{\"role\":\"user\",\"content\":[{\"type\":"
       "\"text\",\"text\":\"b\"},{\"type\":\"image_url\",\"image_url\":{}}]}]",
       "messages[1].content[1].type"}};
  for (const auto& [messages, param] : wrong) {
    const HttpReply reply =
        errors_fixture().post("/v1/chat/completions", {{"messages", Json::parse(messages)}});
    EXPECT_EQ(error_of(reply, 400)["param"], param) << reply.body;
  }
  EXPECT_EQ(error_of(errors_fixture().post("/v1/chat/completions", Json::object()), 400)["param"],
            "messages");
}

TEST(Errors, PromptsAreNamedByTheirPath) {
  const std::vector<std::pair<const char*, const char*>> wrong = {{"\"\"", "prompt"},
                                                                  {"[]", "prompt"},
                                                                  {"5", "prompt"},
                                                                  {"[\"a\",\"\"]", "prompt[1]"},
                                                                  {"[\"a\",5]", "prompt[1]"},
                                                                  {"[1,\"a\"]", "prompt[1]"},
                                                                  {"[[1],[]]", "prompt[1]"},
                                                                  {"[[1],[2,-1]]", "prompt[1][1]"},
                                                                  {"[1,512]", "prompt[1]"},
                                                                  {"[[1],[512]]", "prompt[1][0]"}};
  for (const auto& [prompt, param] : wrong) {
    const HttpReply reply =
        errors_fixture().post("/v1/completions", {{"prompt", Json::parse(prompt)}});
    EXPECT_EQ(error_of(reply, 400)["param"], param) << reply.body;
  }
}

TEST(Errors, AContextThatOverflowsIsToldWithBothNumbers) {
  const std::uint64_t context = errors_fixture().served().context_tokens();
  const std::vector<int> ids(context, 5);
  Json error = error_of(errors_fixture().post("/v1/completions", {{"prompt", ids}}), 400);
  EXPECT_EQ(error["code"], "context_length_exceeded");
  EXPECT_THAT(error["message"].get<std::string>(), HasSubstr(std::to_string(context)));
  error = error_of(errors_fixture().post("/v1/completions",
                                         {{"prompt", {5, 6, 7}}, {"max_tokens", context - 2}}),
                   400);
  EXPECT_EQ(error["param"], "max_tokens");
  EXPECT_THAT(error["message"].get<std::string>(), HasSubstr(std::to_string(context + 1)));
  EXPECT_THAT(error["message"].get<std::string>(), HasSubstr(std::to_string(context)));
}

TEST(Errors, AnotherModelIsNotFoundAndNoneIsMeant) {
  const Json body = {{"prompt", "Once"}, {"max_tokens", 1}};
  for (const char* const name : {"stories", "alias"}) {
    Json named = body;
    named["model"] = name;
    EXPECT_EQ(errors_fixture().complete(named)["model"], "stories");
  }
  EXPECT_EQ(errors_fixture().complete(body)["model"], "stories");
  Json other = body;
  other["model"] = "gpt";
  const Json error = error_of(errors_fixture().post("/v1/completions", other), 404);
  EXPECT_EQ(error["code"], "model_not_found");
}

TEST(Errors, AModelIsFoundByItsIdWhateverItHolds) {
  const Json listed = Json::parse(errors_fixture().get("/v1/models").body)["data"];
  ASSERT_EQ(listed.size(), 3u);
  const std::vector<std::pair<const char*, std::size_t>> found = {
      {"stories", 0},   {"alias", 1},           {"org/st%C3%B6ry", 2}, {"org%2Fst\xc3\xb6ry", 2},
      {"%73tories", 0}, {"org%2fst%c3%b6ry", 2}};
  for (const auto& [id, index] : found) {
    const HttpReply reply = errors_fixture().get(std::string("/v1/models/") + id);
    EXPECT_EQ(reply.status, 200) << id;
    EXPECT_EQ(Json::parse(reply.body), listed[index]) << id;
  }
  for (const char* const id : {"", "gpt", "stories/", "org", "stories%00", "%FF", "stories%2F"}) {
    const HttpReply reply = errors_fixture().get(std::string("/v1/models/") + id);
    EXPECT_EQ(error_of(reply, 404)["code"], "model_not_found") << id;
  }
  for (const char* const id : {"%", "stories%2", "%zz"}) {
    EXPECT_EQ(errors_fixture().get(std::string("/v1/models/") + id).status, 400) << id;
  }
  EXPECT_EQ(errors_fixture().post("/v1/models/stories", Json::object()).status, 405);
}

// The owner of a name can make it resolve to this server and have a browser use it.
TEST(Errors, ANameThatNobodyGaveTheServerIsRefusedForEveryPath) {
  for (const char* const path :
       {"/health", "/cache/map", "/v1/models", "/v1/completions", "/metrics", "/", "/nowhere"}) {
    for (const char* const method : {"GET", "OPTIONS", "POST"}) {
      HttpRequest request = {.method = method, .path = path, .host = "evil.example:8000"};
      for (const char* const origin : {"", "http://evil.example:8000", "https://other.example"}) {
        request.origin = origin;
        const Json error = error_of(errors_fixture().send(request), 403);
        EXPECT_EQ(error["code"], "host_not_allowed");
        EXPECT_THAT(error["message"].get<std::string>(), HasSubstr("allowed_hosts=evil.example"));
        const std::optional<HttpReply> early = refuse_early(request, errors_fixture().state());
        ASSERT_TRUE(early.has_value()) << method << " " << path;
        EXPECT_EQ(error_of(*early, 403)["code"], "host_not_allowed");
      }
      request.origin = "";
      request.host = "127.0.0.1:8000";
      EXPECT_NE(errors_fixture().send(request).status, 403);
    }
  }
}

TEST(Errors, NameOptionsAsWhoStartedTheServerDoes) {
  const OptionName marked = [](std::string_view field, std::string_view value) {
    return "<" + std::string(field) + "|" + std::string(value) + ">";
  };
  const ServerState named("1.2.3", {}, {}, 1, marked);
  const ServerState plain("1.2.3");
  const auto message = [](const HttpRequest& request, const ServerState& state) {
    const HttpReply reply = std::get<HttpReply>(route(request, state));
    return error_of(reply, 403)["message"].get<std::string>();
  };
  const HttpRequest host = {.method = "GET", .path = "/health", .host = "my-server:8000"};
  EXPECT_THAT(message(host, named), HasSubstr("; <allowed_hosts|my-server> allows it"));
  EXPECT_THAT(message(host, plain),
              HasSubstr("; the server option allowed_hosts=my-server allows it"));
  const HttpRequest page = {
      .method = "GET", .path = "/health", .host = "127.0.0.1:8000", .origin = "https://a.example"};
  EXPECT_THAT(message(page, named), HasSubstr("<cors_origin|https://a.example> allows them"));
  EXPECT_THAT(out_of_request_memory(named.request_memory(), 1).message,
              HasSubstr("(<max_request_memory_bytes|>)"));
  EXPECT_THAT(out_of_body_memory(plain.body_memory(), 1).message,
              HasSubstr("(the server option max_total_body_bytes)"));
  EXPECT_THAT(error_of(errors_fixture().get("/cache/tree"), 404)["message"].get<std::string>(),
              HasSubstr("needs the server option kv_events_config"));
}

// refuse_early() is called before a body comes, for anyone who can connect.
TEST(Errors, ABodyIsReadOnlyWhereOneIsTaken) {
  const auto refused = [](const char* method, const char* path, const char* origin = "") {
    const HttpRequest head = {.method = method,
                              .path = path,
                              .host = "127.0.0.1:8000",
                              .origin = origin,
                              .caller = identify("", errors_fixture().state().keys())};
    const auto reply = refuse_early(head, errors_fixture().state());
    return reply ? reply->status : 200;
  };
  for (const char* const path : {"/health", "/ping", "/version", "/", "/metrics", "/v1/models"}) {
    EXPECT_EQ(refused("POST", path), 405) << path;
    EXPECT_EQ(refused("PUT", path), 405) << path;
    EXPECT_EQ(refused("GET", path), 413) << path;
  }
  EXPECT_EQ(refused("OPTIONS", "/v1/chat/completions", "http://127.0.0.1:8000"), 413);
  EXPECT_EQ(refused("POST", "/v1/chat/completions"), 200);
  EXPECT_EQ(refused("POST", "/tokenize"), 200);
}

// A template's error goes to the client, which must not see paths of the server.
TEST(Errors, OfTemplatesNameNoFileOfTheServer) {
  const std::string path = testing::TempDir() + "pagoda_refusing.jinja";
  std::ofstream(path) << "{{ raise_exception('no such talk') }}";
  const auto loaded = text::ChatTemplate::load_file(path, errors_fixture().tokenizer());
  ASSERT_TRUE(loaded.ok()) << loaded.error().message;
  text::Conversation conversation;
  conversation.messages = Json::array({{{"role", "user"}, {"content", "Hi"}}});
  const auto rendered = loaded.value().render(conversation);
  ASSERT_FALSE(rendered.ok());
  EXPECT_THAT(rendered.error().message, HasSubstr("no such talk"));
  EXPECT_THAT(rendered.error().message, testing::Not(HasSubstr("refusing")));
  std::ofstream(path) << "{% if %}";
  EXPECT_THAT(text::ChatTemplate::load_file(path, errors_fixture().tokenizer()).error().message,
              HasSubstr(path));
  std::filesystem::remove(path);
}

TEST(Errors, PathsMethodsAndTypesAreChecked) {
  EXPECT_EQ(errors_fixture().get("/nothing").status, 404);
  const HttpReply wrong_method = errors_fixture().get("/v1/completions");
  EXPECT_EQ(wrong_method.status, 405);
  EXPECT_EQ(wrong_method.headers.front().second, "POST");
  const HttpRequest form = {.method = "POST",
                            .path = "/v1/completions",
                            .content_type = "application/x-www-form-urlencoded",
                            .body = "{}"};
  const HttpReply refused = errors_fixture().send(form);
  EXPECT_EQ(refused.status, 415);
  EXPECT_THAT(refused.body, HasSubstr("add -H 'Content-Type: application/json'"));
  const HttpRequest with_charset = {.method = "POST",
                                    .path = "/detokenize",
                                    .content_type = "Application/JSON; charset=utf-8",
                                    .body = "{\"tokens\":[]}"};
  EXPECT_EQ(errors_fixture().send(with_charset).status, 200);
  const HttpRequest empty = {.method = "POST", .path = "/reset_prefix_cache"};
  EXPECT_EQ(errors_fixture().send(empty).status, 200);
  EXPECT_EQ(errors_fixture().send({.method = "POST", .path = "/v1/completions"}).status, 400);
}

TEST(Errors, AResetOfTiersIsRefusedAndResetsNothing) {
  const Json body = {{"prompt", "A reset that is refused changes nothing"}, {"max_tokens", 1}};
  const auto cached = [&] {
    const Json usage = errors_fixture().complete(body)["usage"];
    return usage["prompt_tokens_details"]["cached_tokens"].get<int>();
  };
  const auto reset = [](const char* query) {
    return errors_fixture().send({.method = "POST", .path = "/reset_prefix_cache", .query = query});
  };
  cached();
  for (const char* const query :
       {"reset_external=true", "a=1&reset_external=1", "reset_external", "reset%5Fexternal=true",
        "reset_external=false&reset_external=True"}) {
    const Json error = error_of(reset(query), 400);
    EXPECT_EQ(error["param"], "reset_external") << query;
    EXPECT_EQ(error["code"], "unsupported_parameter") << query;
    EXPECT_GT(cached(), 0) << query;
  }
  for (const char* const query :
       {"", "reset_external=false", "reset_external=False", "other=true"}) {
    EXPECT_EQ(reset(query).status, 200) << query;
    EXPECT_EQ(cached(), 0) << query;
  }
}

TEST(Errors, PhasesDecideWhoIsServed) {
  StoryFixture own;
  const Json body = {{"prompt", "Once"}, {"max_tokens", 1}};
  const auto statuses = [&] {
    return std::vector<int>{own.get("/health").status, own.get("/ready").status,
                            own.post("/v1/completions", body).status, own.get("/version").status};
  };
  EXPECT_EQ(statuses(), (std::vector<int>{200, 200, 200, 200}));
  own.state().advance(Phase::kDraining);
  EXPECT_EQ(statuses(), (std::vector<int>{200, 503, 503, 200}));
  own.state().advance(Phase::kLoading);
  EXPECT_EQ(statuses(), (std::vector<int>{503, 503, 503, 200}));
}

// A signal may come, or the load fail, while probes ask.
TEST(Errors, AServerThatStopsBeforeItsModelIsThereAnswers) {
  ServerState state("1.2.3");
  const auto status = [&](const char* path) {
    HttpRequest request = {.method = "GET", .path = path};
    request.caller = identify(request.authorization, state.keys());
    return std::get<HttpReply>(route(request, state)).status;
  };
  for (const Phase phase : {Phase::kLoading, Phase::kDraining, Phase::kStopping}) {
    state.advance(phase);
    for (const char* const path : {"/health", "/ready", "/metrics", "/v1/models", "/ping"}) {
      EXPECT_EQ(status(path), 503) << path;
    }
    EXPECT_EQ(status("/version"), 200);
    EXPECT_EQ(status("/tenants"), 200);
  }
}

}  // namespace
}  // namespace pagoda::server
