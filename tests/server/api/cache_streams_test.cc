// What streams of chats say about the cache: however they end, it stands in their last chunk, and
// no chunk without choices is added that nobody asked for.
#include <gtest/gtest.h>

#include <algorithm>

#include "server/story_fixture.h"

namespace pagoda::server {
namespace {

constexpr const char* kStreamedChats = "/v1/chat/completions";
constexpr const char* kBallStory = "Lily and Tom went to the park and played with a big red ball.";

Json streamed_chat(const char* question = kBallStory) {
  return {{"messages", Json::array({{{"role", "user"}, {"content", question}}})},
          {"max_tokens", 40},
          {"temperature", 0}};
}

std::size_t chunks_with(const std::vector<Json>& chunks, const char* member) {
  return static_cast<std::size_t>(std::count_if(
      chunks.begin(), chunks.end(), [&](const Json& chunk) { return chunk.contains(member); }));
}

std::size_t chunks_without_choices(const std::vector<Json>& chunks) {
  return static_cast<std::size_t>(std::count_if(
      chunks.begin(), chunks.end(), [](const Json& chunk) { return chunk["choices"].empty(); }));
}

std::string text_of_choice(const std::vector<Json>& chunks, int index) {
  std::string text;
  for (const Json& chunk : chunks) {
    for (const Json& choice : chunk["choices"]) {
      if (choice["index"] == index) text += choice["delta"].value("content", "");
    }
  }
  return text;
}

// The reader of the text ends such a stream before the engine does.
TEST(CacheStreams, ThatAStopStringEndsSayWhatBecameOfMarks) {
  for (const int choices : {1, 2}) {
    StoryFixture fixture;
    Json body = streamed_chat();
    body["n"] = choices;
    const std::string text = fixture.ask(kStreamedChats, body)["choices"][0]["message"]["content"];
    ASSERT_GT(text.size(), 20u);
    const std::string stop = text.substr(text.size() / 2, 4);
    body["stop"] = stop;
    body["cache_control"] = {{"type", "ephemeral"}};
    const std::vector<Json> chunks = fixture.stream(kStreamedChats, body);
    EXPECT_EQ(chunks_with(chunks, "cache_retention"), 1u) << choices;
    EXPECT_EQ(chunks.back()["cache_retention"][0]["outcome"], "granted") << chunks.back().dump();
    EXPECT_EQ(chunks_without_choices(chunks), 0u);
    EXPECT_EQ(chunks.back()["choices"][0]["finish_reason"], "stop");
    for (int i = 0; i < choices; ++i) {
      EXPECT_EQ(text_of_choice(chunks, i), text.substr(0, text.find(stop)));
    }
  }
}

TEST(CacheStreams, HaveAChunkWithoutChoicesOnlyWhereItIsAskedFor) {
  StoryFixture fixture;
  const Json id = fixture.ask(kStreamedChats, streamed_chat())["id"];
  const auto stream = [&](const char* question, bool explain) {
    Json body = streamed_chat(question);
    body["prompt_cache_options"] = {{"comparison_response_id", id}};
    if (explain) body["cache_explain"] = true;
    return fixture.stream(kStreamedChats, body);
  };
  const std::vector<Json> hit = stream(kBallStory, false);
  EXPECT_EQ(chunks_without_choices(hit), 0u);
  EXPECT_EQ(hit.back()["prompt_cache_diagnostics"]["type"], "cache_hit");
  EXPECT_EQ(chunks_with(hit, "cache_explain"), 0u) << "nothing is to be explained";
  const std::vector<Json> miss = stream("Who is Tom, and where did he go with Lily?", false);
  EXPECT_EQ(chunks_without_choices(miss), 0u);
  EXPECT_EQ(miss.back()["prompt_cache_diagnostics"]["type"], "cache_miss");
  EXPECT_TRUE(miss.back().contains("cache_explain")) << "ours stands beside it";
  const std::vector<Json> explained = stream(kBallStory, true);
  EXPECT_EQ(chunks_without_choices(explained), 1u);
  EXPECT_TRUE(explained.back().contains("cache_explain"));
}

}  // namespace
}  // namespace pagoda::server
