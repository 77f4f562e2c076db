// Many clients at once: none is served worse because of others than necessary.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "counted_allocations.h"
#include "server/story_server.h"

namespace pagoda::server {
namespace {

using testing::HasSubstr;

std::string status_of(const std::optional<std::string>& answer) {
  return answer ? answer->substr(9, 3) : "silence";
}

// Here no byte of either budget is free.
TEST(Pressure, SmallRequestsThatRunNothingNeedNoMemoryOfAll) {
  ServerOptions options = small_server();
  options.request_memory_max = 1;
  options.body_memory_max = 1;
  const StoryServer server(options);
  const std::string chat = R"({"messages":[{"role":"user","content":"Once"}]})";
  const std::string tool =
      R"({"messages":[{"role":"user","content":[{"type":"text","text":"a"}]}]})";
  const std::pair<const char*, std::string> asked[] = {
      {"/tokenize", R"({"prompt":"Once upon a time"})"},
      {"/tokenize", chat},
      {"/tokenize", R"({"prompt":"a","padding":")" + std::string(60'000, 'x') + "\"}"},
      {"/tokenize", R"({"prompt":"a","padding":[)" + repeated("[],", 20'000) + "1]}"},
      {"/detokenize", R"({"tokens":[400,401]})"},
      {"/v1/chat/completions/render", chat},
      {"/v1/chat/completions/render", tool}};
  for (const auto& [path, body] : asked) {
    EXPECT_EQ(status_of(server.ask(posted(path, body))), "200") << path << body.substr(0, 60);
    EXPECT_EQ(status_of(server.ask(chunked(path, body))), "200") << path << body.substr(0, 60);
  }
  const auto refused = server.ask(posted("/v1/completions", R"({"prompt":"a","max_tokens":1})"));
  EXPECT_EQ(status_of(refused), "400") << "what runs is counted, and this alone is too much";
}

TEST(Pressure, ABodyIsFreeByItsSizeHoweverItComes) {
  ServerOptions options = small_server();
  options.body_memory_max = 1;
  const StoryServer server(options);
  const std::string frame = R"({"prompt":"a","padding":""})";
  for (const std::size_t bytes : {1'000u, 33'000u, 40'000u, 50'000u, 65'536u, 65'537u, 100'000u}) {
    const std::string body =
        R"({"prompt":"a","padding":")" + std::string(bytes - frame.size(), 'x') + "\"}";
    ASSERT_EQ(body.size(), bytes);
    const std::string expected = bytes <= 65'536 ? "200" : "413";
    EXPECT_EQ(status_of(server.ask(posted("/tokenize", body))), expected) << bytes;
    EXPECT_EQ(status_of(server.ask(chunked("/tokenize", body))), expected) << bytes;
  }
}

TEST(Pressure, RepliesBeyondAFewKilobytesAreCounted) {
  ServerOptions options = small_server();
  options.request_memory_max = 1;
  const StoryServer server(options);
  const auto reply_to = [&](std::size_t times) {
    return server.ask(posted("/tokenize", R"({"prompt":")" + repeated("q7", times) + "\"}"));
  };
  EXPECT_EQ(status_of(reply_to(1'000)), "200");
  const auto refused = reply_to(30'000);
  EXPECT_EQ(status_of(refused), "400");
  EXPECT_THAT(refused.value_or(""), HasSubstr("all requests together may take 1 "));
}

TEST(Pressure, RepliesOfEverySizeArriveWhole) {
  const StoryServer server;
  for (const std::size_t times : {1u, 900u, 2'000u, 5'000u, 30'000u}) {
    const std::string prompt = repeated("q7", times);
    const auto reply = server.ask(posted("/tokenize", R"({"prompt":")" + prompt + "\"}"));
    ASSERT_EQ(status_of(reply), "200");
    const Json tokens = Json::parse(reply->substr(reply->find("\r\n\r\n") + 4));
    EXPECT_EQ(tokens["tokens"].size(), tokens["count"].get<std::size_t>());
  }
}

// Like printf 'GET …' | nc -N: the client closes its side and reads.
TEST(Pressure, AClientThatOnlyEndsItsSideIsAnswered) {
  StoryServer server;
  std::promise<void> go_on;
  server.fixture().engine().post([held = go_on.get_future().share()](kv::Cache&) { held.wait(); });
  auto tree = std::async(std::launch::async, [&] { return server.ask(got("/cache/tree"), true); });
  std::this_thread::sleep_for(std::chrono::milliseconds(200));  // the end has most likely arrived
  go_on.set_value();
  EXPECT_EQ(status_of(tree.get()), "200");
  const std::string text(100'000, 'a');
  EXPECT_EQ(status_of(server.ask(posted("/tokenize", R"({"prompt":")" + text + "\"}"), true)),
            "200");
}

// Returns the bytes that the engine's thread allocates for this many waiting requests.
std::uint64_t bytes_to_show_tree(std::size_t requests, StoryFixture& fixture) {
  const ServedModel shown = {.names = {"stories"},
                             .tokenizer = fixture.tokenizer(),
                             .chat_template = std::nullopt,
                             .engine = fixture.engine(),
                             .step_notifier = fixture.served().step_notifier,
                             .fingerprint = "test",
                             .shows_tree = true};
  ServerState state("1.2.3");
  state.open(shown);
  HttpRequest request = {.method = "GET", .path = "/cache/tree"};
  request.caller = identify({}, state.keys());
  std::promise<void> go_on;
  fixture.engine().post([held = go_on.get_future().share()](kv::Cache&) { held.wait(); });
  std::vector<std::unique_ptr<DeferredReply>> replies;
  std::atomic<std::size_t> given = 0;
  for (std::size_t i = 0; i < requests; ++i) {
    Routed routed = route(request, state);
    replies.push_back(std::get<std::unique_ptr<DeferredReply>>(std::move(routed)));
    replies.back()->start([&given] { ++given; });
  }
  const std::uint64_t before = bytes_allocated_so_far();
  go_on.set_value();
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(kTimeoutSeconds);
  while (given < requests && std::chrono::steady_clock::now() < end) std::this_thread::yield();
  EXPECT_EQ(given, requests);
  const std::uint64_t bytes = bytes_allocated_so_far() - before;
  const std::string first = replies.front()->take()().body;
  for (std::size_t i = 1; i < requests; ++i) EXPECT_EQ(replies[i]->take()().body, first);
  EXPECT_THAT(first, HasSubstr("\"tree\":[{"));
  return bytes;
}

TEST(Pressure, OneDrawingOfTheTreeServesAllWhoWaitForIt) {
  StoryFixture fixture;
  for (const char* const prompt : {"Once upon", "The end", "A cat"}) {
    fixture.complete({{"prompt", prompt}, {"max_tokens", 200}, {"ignore_eos", true}});
  }
  const std::uint64_t alone = bytes_to_show_tree(1, fixture);
  EXPECT_LT(bytes_to_show_tree(200, fixture), 20 * alone);
}

// A slow template, queued for many clients of which all but the last have left.
TEST(Pressure, NothingIsReadForClientsThatLeft) {
  ServerOptions options = small_server();
  options.connections_per_client_max = 100;
  StoryServer server(options);
  server.set_template(
      "{% for i in range(2000) %}{% for j in range(300) %}{% if i == j + 5000 %}x{% endif %}"
      "{% endfor %}{% endfor %}Once");
  const std::string request = posted(
      "/v1/chat/completions", R"({"max_tokens":1,"messages":[{"role":"user","content":"a"}]})");
  const double begin = cpu_seconds_of("text");
  EXPECT_EQ(status_of(server.ask(request)), "200");
  const double one = cpu_seconds_of("text") - begin;
  std::vector<int> clients;
  for (int i = 0; i < 12; ++i) clients.push_back(server.connected(request));
  for (const int client : clients) close(client);
  EXPECT_EQ(status_of(server.ask(request)), "200");
  EXPECT_LT(cpu_seconds_of("text") - begin - one, 7 * one) << "of 13";
}

}  // namespace
}  // namespace pagoda::server
