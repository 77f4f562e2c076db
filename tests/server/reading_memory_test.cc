// Bodies that are being read when the server stops are read no further, wherever the reading is.
#include "server/reading_memory.h"

#include <gtest/gtest.h>

#include <atomic>
#include <functional>

#include "server/api/anthropic/messages_request.h"
#include "server/api/completion_request.h"
#include "server/api/ollama/ollama_request.h"
#include "server/api/responses/responses_request.h"
#include "server/story_fixture.h"

namespace pagoda::server {
namespace {

Json many(std::size_t count, const Json& value) {
  Json all = Json::array();
  for (std::size_t i = 0; i < count; ++i) all.push_back(value);
  return all;
}

// Parsing, translating, and the prompts of a batch, each of which takes a while to tokenise.
TEST(ReadingMemory, GivesNothingOnceTheServerStops) {
  StoryFixture fixture;
  const Json messages = many(100, {{"role", "user"}, {"content", "Hi"}});
  const Json anthropic_body = {{"max_tokens", 1}, {"messages", messages}};
  const Json responses_body = {{"input", messages}};
  const Json call = {{"function", {{"name", "f"}, {"arguments", Json::object()}}}};
  const Json calling = {{"role", "assistant"}, {"content", ""}, {"tool_calls", many(100, call)}};
  const Json ollama_body = {{"messages", Json::array({calling})}};
  const Json batch = {{"prompt", Json::array({"Once", "upon"})}, {"max_tokens", 1}};
  const std::function<void(ReadingMemory&)> readers[] = {
      [](ReadingMemory& memory) { parse_json(R"({"a": [1, 2, 3]})", &memory); },
      [&](ReadingMemory& memory) { anthropic::chat_of_messages(anthropic_body, &memory); },
      [&](ReadingMemory& memory) { responses::chat_of_responses(responses_body, &memory); },
      [&](ReadingMemory& memory) { ollama::chat_of_chat(ollama_body, &memory); },
      [&](ReadingMemory& memory) {
        read_text_request(batch, fixture.served(), {memory, true});
      },
  };
  ByteBudget budget(64 << 20, "max_request_memory_bytes");
  std::atomic<bool> stops = false;
  for (const auto& read : readers) {
    for (const bool stopping : {false, true}) {
      stops = stopping;
      ReadingMemory memory(&budget, &stops);
      std::string code = "none";
      try {
        read(memory);
      } catch (const ApiError& error) {
        code = error.code;
      }
      EXPECT_EQ(code, stopping ? "draining" : "none") << &read - readers;
    }
  }
}

}  // namespace
}  // namespace pagoda::server
