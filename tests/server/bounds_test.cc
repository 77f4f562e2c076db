// A request's time, memory and error replies are bounded by its size, whatever it holds.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <ctime>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "counted_allocations.h"
#include "server/api/request_memory.h"
#include "server/byte_budget.h"
#include "server/request_reader.h"
#include "server/story_fixture.h"
#include "text/counting_account.h"
#include "text/strict_json.h"

namespace pagoda::server {
namespace {

using testing::HasSubstr;
using text::CountingAccount;

constexpr std::uint64_t kMiB = 1 << 20;

StoryFixture& bounds_fixture() {
  static StoryFixture fixture;
  return fixture;
}

HttpRequest posted_completion(std::string body) {
  HttpRequest request = {.method = "POST",
                         .path = kCompletionsPath,
                         .content_type = "application/json",
                         .body = std::move(body)};
  request.caller = identify({}, bounds_fixture().state().keys());
  return request;
}

// Counts this thread alone, so that other programs do not matter.
double cpu_seconds() {
  timespec now = {};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

Json error_of(const HttpReply& reply) { return Json::parse(reply.body)["error"]; }

// Comparing each key with all others would take minutes here.
TEST(Bounds, ManyBiasesAreReadInTimeWithTheirNumber) {
  std::string biases;
  for (int i = 0; i < 400'000; ++i) {
    biases += (i == 0 ? "\"" : ",\"") + std::to_string(i) + "\":1";
  }
  const double begin = cpu_seconds();
  const HttpReply reply = bounds_fixture().post_text(
      kCompletionsPath, R"({"prompt":"Once","max_tokens":1,"logit_bias":{)" + biases + "}}");
  EXPECT_EQ(reply.status, 400);
  EXPECT_THAT(reply.body, HasSubstr("logit_bias names token 512"));
  EXPECT_LT(cpu_seconds() - begin, 20.0);
}

TEST(Bounds, ATokenHasOneNameAmongBiases) {
  for (const char* const key : {"01", "+1", " 1", "1 ", "", "-0", "4294967296", "1e1"}) {
    const HttpReply reply = bounds_fixture().post(
        kCompletionsPath, {{"prompt", "Once"}, {"max_tokens", 1}, {"logit_bias", {{key, 1}}}});
    EXPECT_EQ(reply.status, 400) << key;
    EXPECT_EQ(error_of(reply)["param"], "logit_bias") << key;
  }
  bounds_fixture().complete(
      {{"prompt", "Once"}, {"max_tokens", 1}, {"logit_bias", {{"0", 1}, {"10", 1}}}});
}

// Returns the bytes allocated between the body and a completion that could start.
std::uint64_t bytes_to_route(const Json& body, int status = 0) {
  const HttpRequest request = posted_completion(body.dump());
  const std::uint64_t before = bytes_allocated_so_far();
  const Routed routed = route(request, bounds_fixture().state());
  const std::uint64_t bytes = bytes_allocated_so_far() - before;
  const auto* const reply = std::get_if<HttpReply>(&routed);
  EXPECT_EQ(reply == nullptr ? 0 : reply->status, status) << (reply ? reply->body : "");
  return bytes;
}

TEST(Bounds, ChoicesShareStopStringsStopTokensAndBiases) {
  Json body = {{"prompt", std::vector<std::string>(200, "Once")}, {"n", 8}, {"max_tokens", 1}};
  const std::uint64_t plain = bytes_to_route(body);
  std::vector<std::string> stops;
  for (int i = 0; i < 64; ++i) stops.push_back(std::string(4000, 'x') + std::to_string(i));
  body["stop"] = stops;
  for (int i = 0; i < 500; ++i) {
    body["stop_token_ids"].push_back(i);
    body["logit_bias"][std::to_string(i)] = 1;
  }
  // 64 strings of 4 kB with their tables are 1.3 MB; 1600 copies of them would be 2 GB.
  EXPECT_LT(bytes_to_route(body), plain + 16 * kMiB);
}

TEST(Bounds, TooManyChoicesAreRefusedBeforeAnythingIsMadeForEach) {
  const std::vector<std::string> prompts(20'000, "Once");
  const std::vector<std::string> stops(64, std::string(4096, 'x'));
  const Json many = {{"prompt", prompts}, {"n", 8}, {"stop", stops}};
  EXPECT_LT(bytes_to_route(many, 400), 32 * kMiB);
  EXPECT_EQ(error_of(bounds_fixture().post(kCompletionsPath, many))["code"], "request_too_large");
  const Json beyond = {{"prompt", prompts}, {"n", 128}, {"stop", stops}};
  EXPECT_LT(bytes_to_route(beyond, 400), 32 * kMiB);
  EXPECT_EQ(error_of(bounds_fixture().post(kCompletionsPath, beyond))["param"], "n");
}

TEST(Bounds, WhatEveryChoiceRepeatsIsCounted) {
  const std::string text(300, 'a');
  Json body = {{"prompt", std::vector<std::string>(400, text)}, {"n", 8}, {"max_tokens", 1}};
  bytes_to_route(body);
  body.update({{"echo", true}, {"logprobs", 5}});
  EXPECT_LT(bytes_to_route(body, 400), 64 * kMiB);
  EXPECT_EQ(error_of(bounds_fixture().post(kCompletionsPath, body))["code"], "request_too_large");
}

// Each choice keeps 8 bytes of every token that its prompt has, for the penalty.
TEST(Bounds, PenaltiesOfPromptsAreCountedForEveryChoice) {
  Prompt prompt;
  prompt.tokens.resize(1000, TokenId(7));
  CompletionRequest request;
  request.engine.sampling.n = 64;
  const auto bytes = [&](float penalty) {
    request.engine.sampling.repetition_penalty = penalty;
    RequestMemory memory(request, 1, "prompt");
    memory.add(prompt);
    return memory.bytes();
  };
  EXPECT_GE(bytes(1.1f), bytes(1.0f) + 64 * 1000 * 8);
}

TEST(Bounds, AStopListIsCountedBeforeItIsCopied) {
  Json body = {{"prompt", "Once"}, {"max_tokens", 1}};
  body["stop"] = std::vector<std::string>(65, "x");
  EXPECT_EQ(error_of(bounds_fixture().post(kCompletionsPath, body))["param"], "stop");
  body.erase("stop");
  body["stop_token_ids"] = std::vector<int>(1025, 1);
  EXPECT_EQ(error_of(bounds_fixture().post(kCompletionsPath, body))["param"], "stop_token_ids");
  body["stop_token_ids"] = std::vector<int>(1024, 1);
  EXPECT_EQ(bounds_fixture().post(kCompletionsPath, body).status, 200);
  body["cache_salt"] = std::string(513, 'x');
  EXPECT_EQ(error_of(bounds_fixture().post(kCompletionsPath, body))["param"], "cache_salt");
  body["cache_salt"] = "\nkv_policy=window:4";  // would be taken for a KV policy in block hashes
  EXPECT_EQ(error_of(bounds_fixture().post(kCompletionsPath, body))["param"], "cache_salt");
}

TEST(Bounds, APromptThatCannotFitIsNotTokenised) {
  const std::string spaces(16 * kMiB, ' ');
  for (const Json& prompt : {Json(spaces), Json({"Once", spaces})}) {
    const Json body = {{"prompt", prompt}, {"max_tokens", 1}};
    // The bound is the body as JSON, which grows by doubling; merging all of it would take four
    // times as much.
    EXPECT_LT(bytes_to_route(body, 400), 256 * kMiB);
    EXPECT_EQ(error_of(bounds_fixture().post(kCompletionsPath, body))["code"],
              "context_length_exceeded");
  }
  const Json chat = {{"messages", {{{"role", "user"}, {"content", std::string(kMiB, ' ')}}}}};
  const Json error = error_of(bounds_fixture().post("/v1/chat/completions", chat));
  EXPECT_EQ(error["code"], "context_length_exceeded");
  EXPECT_EQ(error["param"], "messages");
}

TEST(Bounds, RequestsTakeMemoryTogetherUntilTheyEnd) {
  ByteBudget& memory = bounds_fixture().state().request_memory();
  const std::uint64_t most = memory.bytes_max();
  const Json body = {{"prompt", std::vector<std::string>(64, "Once")}, {"max_tokens", 1}};
  memory.set_max(2 * kMiB);
  Routed first = route(posted_completion(body.dump()), bounds_fixture().state());
  ASSERT_TRUE(std::holds_alternative<std::unique_ptr<Completion>>(first));
  EXPECT_GE(memory.bytes_held(), 64u * 1024);
  std::vector<Routed> more;
  for (int i = 0; i < 10; ++i)
    more.push_back(route(posted_completion(body.dump()), bounds_fixture().state()));
  const auto* const refused = std::get_if<HttpReply>(&more.back());
  ASSERT_NE(refused, nullptr);
  EXPECT_EQ(refused->status, 503);
  EXPECT_THAT(refused->body, HasSubstr("max_request_memory_bytes"));
  EXPECT_LE(memory.bytes_held(), 2 * kMiB);
  more.clear();
  EXPECT_EQ(bounds_fixture().post(kCompletionsPath, body).status, 200);
  first = HttpReply();
  EXPECT_EQ(memory.bytes_held(), 0u);
  memory.set_max(most);
}

// The names of arguments are kept until the answer is read.
TEST(Bounds, ToolsOfAnOpenRequestAreCounted) {
  ByteBudget& memory = bounds_fixture().state().request_memory();
  Json properties;
  for (int i = 0; i < 3000; ++i) properties["argument_" + std::to_string(i)] = {{"type", "string"}};
  const Json function = {{"name", "f"},
                         {"parameters", {{"type", "object"}, {"properties", properties}}}};
  Json body = {{"messages", {{{"role", "user"}, {"content", "Once"}}}}, {"max_tokens", 1}};
  const auto held_by = [&] {
    HttpRequest request = posted_completion(body.dump());
    request.path = "/v1/chat/completions";
    const Routed open = route(request, bounds_fixture().state());
    EXPECT_TRUE(std::holds_alternative<std::unique_ptr<Completion>>(open));
    return memory.bytes_held();
  };
  const std::uint64_t without = held_by();
  body["tools"] = Json::array({{{"type", "function"}, {"function", function}}});
  body["tool_choice"] = "none";
  EXPECT_GE(held_by(), without + 3000u * 100);
  EXPECT_EQ(memory.bytes_held(), 0u);
}

TEST(Bounds, WhatIsKeptForAWholeReplyIsCountedToo) {
  ByteBudget& memory = bounds_fixture().state().request_memory();
  const std::uint64_t most = memory.bytes_max();
  Json body = {{"prompt", "Once"}, {"max_tokens", 400}, {"ignore_eos", true}, {"logprobs", 5}};
  memory.set_max(16 << 10);
  const HttpReply alone = bounds_fixture().post(kCompletionsPath, body);
  EXPECT_EQ(alone.status, 400) << "no wait would help";
  EXPECT_EQ(error_of(alone)["code"], "request_too_large");
  EXPECT_EQ(memory.bytes_held(), 0u);
  memory.set_max(most);
  {
    ByteBudget::Hold others(memory);
    ASSERT_TRUE(others.resize(most - (16 << 10)));
    const HttpReply beside = bounds_fixture().post(kCompletionsPath, body);
    EXPECT_EQ(beside.status, 503) << "others may end";
    EXPECT_EQ(error_of(beside)["code"], "out_of_request_memory");
  }
  memory.set_max(16 << 10);
  bounds_fixture().stream(kCompletionsPath, body);
  memory.set_max(most);
  EXPECT_EQ(bounds_fixture().post(kCompletionsPath, body).status, 200);
}

TEST(ByteBudget, GivesNoMoreThanThereIsAndTakesAllBack) {
  ByteBudget budget(100);
  {
    ByteBudget::Hold one(budget);
    ByteBudget::Hold two(budget);
    EXPECT_TRUE(one.resize(60));
    EXPECT_FALSE(two.resize(41));
    EXPECT_TRUE(two.resize(40));
    EXPECT_FALSE(one.grow(1));
    EXPECT_TRUE(one.resize(10));
    EXPECT_TRUE(two.resize(90));
    EXPECT_FALSE(two.resize(UINT64_MAX));
    EXPECT_EQ(budget.bytes_held(), 100u);
    ByteBudget::Hold three(std::move(one));
    two = std::move(three);
    EXPECT_EQ(budget.bytes_held(), 10u);
  }
  EXPECT_EQ(budget.bytes_held(), 0u);
  EXPECT_TRUE(ByteBudget::Hold().resize(5)) << "of nothing, nothing is counted";
}

TEST(ByteBudget, IsCountedAsLongAsAHoldIsThere) {
  ByteBudget::Hold hold;
  {
    const ByteBudget budget(100);
    hold = ByteBudget::Hold(budget);
  }
  EXPECT_TRUE(hold.resize(60));
  EXPECT_FALSE(hold.resize(101));
  EXPECT_EQ(hold.budget().bytes_held(), 60u);
}

TEST(Bounds, ErrorsRepeatLittleOfWhatWasSent) {
  const std::string long_text(2 * kMiB, 'x');
  const std::string accents = [] {
    std::string text;
    for (int i = 0; i < 100'000; ++i) text += "\xC3\xA9";
    return text;
  }();
  const std::string bodies[] = {
      long_text,
      "{\"prompt\": \"" + long_text,
      "{\"prompt\": " + std::string(100'000, '9') + long_text + "}",
      "{\"" + long_text + "\": 1, \"" + long_text + "\": 2}",
      Json{{"model", long_text}, {"prompt", "a"}}.dump(),
      Json{{"model", accents}, {"prompt", "a"}}.dump(),
      Json{{"prompt", "a"}, {"logit_bias", {{long_text, 1}}}}.dump(),
      Json{{"messages", {{{"role", "user"}, {"content", {{{"type", long_text}}}}}}}}.dump(),
  };
  for (const std::string& body : bodies) {
    for (const char* const path :
         {kCompletionsPath, "/v1/chat/completions", "/tokenize", "/detokenize"}) {
      const HttpReply reply = bounds_fixture().post_text(path, body);
      EXPECT_LT(reply.body.size(), 4096u) << path << " " << body.substr(0, 40);
      EXPECT_THAT(reply.body, Not(HasSubstr("\xEF\xBF\xBD")));
      if (std::string_view(path) == kCompletionsPath) {
        EXPECT_GE(reply.status, 400);
      }
    }
  }
  const HttpReply model = bounds_fixture().post_text(kCompletionsPath, bodies[4]);
  EXPECT_THAT(error_of(model)["message"].get<std::string>(), HasSubstr("this server has"));
}

TEST(Bounds, PathsMethodsAndTypesAreRepeatedInPartToo) {
  const std::string long_word(15'000, 'x');
  for (const HttpRequest& request :
       {HttpRequest{.method = "GET", .path = "/" + long_word},
        HttpRequest{.method = long_word, .path = "/health"},
        HttpRequest{
            .method = "POST", .path = kCompletionsPath, .content_type = long_word, .body = "{}"},
        HttpRequest{.method = "GET", .path = "/health", .origin = "https://" + long_word}}) {
    const HttpReply reply = bounds_fixture().send(request);
    EXPECT_GE(reply.status, 400);
    EXPECT_LT(reply.body.size(), 4096u);
  }
}

TEST(Bounds, ShortenedTextsKeepBothEndsAndWholeCharacters) {
  EXPECT_EQ(text::abbreviated("abc", 3), "abc");
  for (std::size_t letters = 100; letters < 110; ++letters) {
    std::string text = "begin";
    for (std::size_t i = 0; i < letters; ++i) text += "\xE2\x82\xAC";
    const std::string kept = text::abbreviated(text + "end", 64);
    EXPECT_LE(kept.size(), 64u);
    EXPECT_TRUE(kept.starts_with("begin") && kept.ends_with("end"));
    EXPECT_EQ(Json(kept).dump().size(), kept.size() + 2) << "it is UTF-8";
  }
}

TEST(Bounds, RepliesOfTokenizeAndDetokenizeAreBounded) {
  const std::uint64_t most = 1 << 18;
  const Json many = {{"tokens", std::vector<int>(most + 1, 5)}};
  EXPECT_EQ(error_of(bounds_fixture().post("/detokenize", many))["param"], "tokens");
  const Json enough = {{"tokens", std::vector<int>(most, 5)}};
  EXPECT_EQ(bounds_fixture().post("/detokenize", enough).status, 200);
  std::string text;
  while (text.size() < 4 * kMiB) text += "q7";
  const Json error = error_of(bounds_fixture().post("/tokenize", {{"prompt", text}}));
  EXPECT_EQ(error["param"], "prompt");
  EXPECT_THAT(error["message"].get<std::string>(), HasSubstr(std::to_string(most)));
  EXPECT_GT(bounds_fixture().ask("/tokenize", {{"prompt", text.substr(0, 10'000)}})["count"], 512)
      << "a text may be longer than the context";
}

std::string many_keys(std::size_t count) {
  std::string all;
  for (std::size_t i = 0; i < count; ++i)
    all += (i > 0 ? ",\"" : "\"") + std::to_string(i) + "\":0";
  return all;
}

// Values take up to twenty times as much memory as their text.
TEST(Bounds, WhatJsonTakesIsCountedFromAboveAndNotFarFromIt) {
  const std::string texts[] = {
      "[" + repeated("[],", 100'000) + "1]",
      "[" + repeated("{},", 100'000) + "1]",
      "[" + repeated("\"\",", 100'000) + "1]",
      "[" + repeated("1,", 100'000) + "1]",
      "[" + repeated("[1,2],", 100'000) + "1]",
      "[" + repeated("{\"a\":1},", 100'000) + "1]",
      "[" + repeated("{\"abcdefghijklmnop\":\"abcdefghijklmnop\"},", 50'000) + "1]",
      "[" + repeated("[[[[[1,1,1],1],1],1],1],", 20'000) + "1]",
      "{" + many_keys(100'000) + "}",
      "\"" + std::string(2'000'000, 'x') + "\"",
      "\"" + repeated("\\u00e9", 300'000) + "\"",
      "[\"" + std::string(1'100'000, 'x') + "\",\"" + std::string(1'100'000, 'y') + "\"]",
  };
  for (const std::string& json : texts) {
    CountingAccount account;
    const HeldBytes held;
    const auto parsed = text::parse_strict_json(json, &account);
    ASSERT_TRUE(parsed.ok());
    EXPECT_GE(account.taken(), held.most()) << json.substr(0, 30);
    EXPECT_LE(account.taken(), 4 * held.most() + kMiB) << json.substr(0, 30);
    const std::uint64_t before = held.now();
    EXPECT_GE(text::json_bytes(parsed.value()), before) << json.substr(0, 30);
    EXPECT_LE(text::json_bytes(parsed.value()), 2 * before + kMiB) << json.substr(0, 30);
    {
      const Json copy = parsed.value();
      EXPECT_GE(text::json_bytes(copy), held.now() - before) << json.substr(0, 30);
    }
    CountingAccount half(held.most() / 2);
    const auto refused = text::parse_strict_json(json, &half);
    ASSERT_FALSE(refused.ok()) << json.substr(0, 30);
    EXPECT_EQ(refused.error().code, ErrorCode::kExhausted);
  }
}

TEST(Bounds, ABodyInChunksIsCountedWithTheBufferThatItFills) {
  const ConnectionOptions limits;
  RequestReader reader(limits);
  reader.put("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n");
  std::string pending;
  pending.reserve(4096);
  const HeldBytes held;
  const std::string chunk = "400\r\n" + std::string(1024, 'x') + "\r\n";
  for (int i = 0; i < 5'000; ++i) {
    pending += chunk;
    pending.erase(0, reader.put(pending));
    ASSERT_GE(reader.body_bytes() + 4096, held.now()) << "after " << i << " KiB";
  }
}

TEST(Bounds, WhatABodyBecomesIsPartOfTheMemoryOfRequests) {
  ByteBudget& memory = bounds_fixture().state().request_memory();
  const std::uint64_t most = memory.bytes_max();
  memory.set_max(2 * kMiB);
  const std::string values = repeated("[],", 60'000) + "1";
  const std::string chat = R"({"max_tokens":1,"messages":[{"role":"user","content":"Once"}])";
  const std::pair<const char*, std::string> bodies[] = {
      {kCompletionsPath, R"({"prompt":"Once","max_tokens":1,"padding":[)" + values + "]}"},
      {"/tokenize", R"({"prompt":"Once","padding":[)" + values + "]}"},
      {"/v1/chat/completions", chat + R"(,"padding":[)" + values + "]}"},
      {"/v1/chat/completions", chat + R"(,"chat_template_kwargs":{)" + many_keys(12'000) + "}}"},
      {"/v1/chat/completions/render", chat + R"(,"padding":[)" + values + "]}"},
      {"/cache/explain", R"({"prompt":"Once","padding":[)" + values + "]}"}};
  for (const auto& [path, body] : bodies) {
    const HttpReply reply = bounds_fixture().post_text(path, body);
    EXPECT_EQ(reply.status, 400) << path << body.substr(0, 90);
    EXPECT_THAT(reply.body, HasSubstr("request_too_large")) << path;
    EXPECT_EQ(memory.bytes_held(), 0u) << path;
  }
  memory.set_max(most);
  for (const auto& [path, body] : bodies) {
    ByteBudget::Hold others(memory);
    ASSERT_TRUE(others.resize(most - 2 * kMiB));
    const HttpReply reply = bounds_fixture().post_text(path, body);
    EXPECT_EQ(reply.status, 503) << path << body.substr(0, 90);
    EXPECT_THAT(reply.body, HasSubstr("out_of_request_memory")) << path;
  }
  memory.set_max(2 * kMiB);
  EXPECT_EQ(bounds_fixture().post(kCompletionsPath, {{"prompt", "Once"}, {"max_tokens", 1}}).status,
            200);
  memory.set_max(most);
  for (const auto& [path, body] : bodies) {
    EXPECT_EQ(bounds_fixture().post_text(path, body).status, 200) << path;
    EXPECT_EQ(memory.bytes_held(), 0u) << path;
  }
}

TEST(Bounds, AnIdleServerNeverSaysThatOthersHoldTheMemory) {
  ByteBudget& memory = bounds_fixture().state().request_memory();
  const std::uint64_t most = memory.bytes_max();
  const std::string prompts = "[" + repeated("\"Once\",", 99) + "\"Once\"]";
  const std::string body = "{\"prompt\":" + prompts + ",\"max_tokens\":1,\"padding\":[" +
                           repeated("[],", 60'000) + "1]}";
  std::set<int> statuses;
  for (std::uint64_t max = kMiB / 4; max <= 16 * kMiB; max += kMiB / 4) {
    memory.set_max(max);
    const int status = bounds_fixture().post_text(kCompletionsPath, body).status;
    EXPECT_NE(status, 503) << "with " << max << " bytes for all requests";
    statuses.insert(status);
  }
  EXPECT_EQ(statuses, (std::set<int>{200, 400}));
  memory.set_max(most);
}

TEST(Bounds, NamesGivenToATemplateAreCountedWithWhatItMakes) {
  text::Conversation conversation;
  conversation.messages = Json::parse(R"([{"role":"user","content":"a"}])");
  conversation.kwargs = Json::parse("{" + many_keys(20'000) + "}");
  CountingAccount account;
  const HeldBytes held;
  const auto rendered = bounds_fixture().served().chat_template->render(
      conversation, {.bytes = 64 * kMiB, .account = &account});
  ASSERT_TRUE(rendered.ok()) << rendered.error().message;
  EXPECT_GE(account.taken(), held.most());
  EXPECT_FALSE(bounds_fixture().served().chat_template->render(conversation, {.bytes = kMiB}).ok());
}

}  // namespace
}  // namespace pagoda::server
