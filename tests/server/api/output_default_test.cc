// Requests that name no limit for their output get the server's, or their tenant's.
#include <gtest/gtest.h>

#include "server/tenants_fixture.h"

namespace pagoda::server {
namespace {

constexpr const char* kOutputKeys =
    "tenant plain\nkey plain-key plain\n"
    "tenant small output_tokens_default=3\nkey small-key small\n"
    "tenant large output_tokens_default=21\nkey large-key large\n"
    "tenant bounded output_tokens=12\nkey bounded-key bounded\n";

constexpr std::uint64_t kOutputDefault = 9;

class OutputDefault : public TenantsFixture {
 protected:
  OutputDefault() : TenantsFixture(kOutputKeys, kOutputDefault) {}
};

Json without_end(Json more) {
  Json body = {{"messages", {{{"role", "user"}, {"content", "Tell me of Tom."}}}},
               {"temperature", 0},
               {"ignore_eos", true}};
  body.update(more);
  return body;
}

TEST_F(OutputDefault, IsTheTenantsElseTheServersUnlessTheRequestSays) {
  struct Row {
    const char* key;
    Json more;
    int tokens;
  };
  const std::vector<Row> rows = {{"plain-key", Json::object(), 9},
                                 {"small-key", Json::object(), 3},
                                 {"large-key", Json::object(), 21},
                                 {"plain-key", {{"max_tokens", 14}}, 14},
                                 {"small-key", {{"max_completion_tokens", 14}}, 14},
                                 {"plain-key", {{"min_tokens", 12}}, 12}};
  for (const Row& row : rows) {
    const Json reply = ask(row.key, "/v1/chat/completions", without_end(row.more));
    EXPECT_EQ(reply["usage"]["completion_tokens"], row.tokens) << row.key << row.more;
    EXPECT_EQ(reply["choices"][0]["finish_reason"], "length") << row.key << row.more;
  }
}

TEST_F(OutputDefault, HoldsForTheOtherApis) {
  const Json response =
      ask("plain-key", "/v1/responses",
          {{"input", "Tell me of Tom."}, {"temperature", 0}, {"ignore_eos", true}});
  EXPECT_EQ(response["usage"]["output_tokens"], 9);
  EXPECT_EQ(response["status"], "incomplete");
  // Ollama's options have no ignore_eos: the story is longer than the limit.
  const auto ollama = [&](Json options, const char* key = "plain-key") {
    options["temperature"] = 0;
    return ask(key, "/api/generate",
               {{"prompt", "Tell me of Tom."}, {"stream", false}, {"options", options}});
  };
  const Json limited = ollama(Json::object());
  EXPECT_EQ(limited["eval_count"], 9);
  EXPECT_EQ(limited["done_reason"], "length");
  EXPECT_GT(ollama({{"num_predict", -1}})["eval_count"], 9) << "asks for what fits";
  EXPECT_EQ(ollama({{"num_predict", -2}}, "bounded-key")["eval_count"], 12) << "within limits";
  EXPECT_EQ(ollama({{"num_predict", 4}})["eval_count"], 4);
}

TEST(OutputDefaultOff, AnAnswerGoesOnAsLongAsItFits) {
  StoryFixture fixture;
  const Json reply = fixture.ask("/v1/chat/completions", without_end(Json::object()));
  EXPECT_EQ(reply["usage"]["total_tokens"], fixture.served().context_tokens());
  EXPECT_EQ(reply["choices"][0]["finish_reason"], "length");
}

}  // namespace
}  // namespace pagoda::server
