// "kv_policy" of requests: what is read, refused and told, in every API.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "server/story_fixture.h"

namespace pagoda::server {
namespace {

using testing::HasSubstr;

constexpr std::uint64_t kStoryContext = 512;

StoryFixture& policy_fixture() {
  static StoryFixture fixture;
  return fixture;
}

Json story_body(Json more) {
  Json body = {{"prompt", "Once upon a time"}, {"temperature", 0}, {"ignore_eos", true}};
  body.update(more);
  return body;
}

TEST(KvPolicyApi, IsAnObjectOrTheWordsOfTheFlag) {
  StoryFixture& fixture = policy_fixture();
  const Json streaming = {{"type", "streaming"}, {"sinks", 4}, {"window", 40}};
  const Json as_object =
      fixture.complete(story_body({{"max_tokens", 120}, {"kv_policy", streaming}}));
  const Json as_words =
      fixture.complete(story_body({{"max_tokens", 120}, {"kv_policy", "streaming:4+40"}}));
  EXPECT_EQ(as_object["choices"][0]["text"], as_words["choices"][0]["text"]);
  EXPECT_EQ(as_words["usage"]["kv_policy"]["name"], "streaming:4+40");
  EXPECT_GT(as_words["usage"]["prompt_tokens_details"]["cached_tokens"], 0)
      << "the same policy, the same blocks";
  const Json window = fixture.complete(
      story_body({{"max_tokens", 120}, {"kv_policy", {{"type", "window"}, {"window", 40}}}}));
  EXPECT_EQ(window["usage"]["kv_policy"]["name"], "window:40");
  EXPECT_NE(window["choices"][0]["text"], as_words["choices"][0]["text"]);
}

TEST(KvPolicyApi, TellsWhatWasKeptAndDropped) {
  StoryFixture& fixture = policy_fixture();
  const Json reply =
      fixture.complete(story_body({{"max_tokens", 100}, {"kv_policy", "streaming:4+40"}}));
  const Json usage = reply["usage"];
  const auto all = usage["total_tokens"].get<std::uint64_t>();
  // The next token would see the sinks, and 39 tokens before itself.
  EXPECT_EQ(usage["kv_policy"]["tokens_kept"], 43);
  EXPECT_EQ(usage["kv_policy"]["tokens_dropped"], all - 43);
  EXPECT_EQ(reply["truncated"], true);
  const Json short_reply =
      fixture.complete(story_body({{"max_tokens", 5}, {"kv_policy", "streaming:4+40"}}));
  EXPECT_EQ(short_reply["usage"]["kv_policy"]["tokens_dropped"], 0);
  EXPECT_FALSE(short_reply.contains("truncated"));
  const Json full = fixture.complete(story_body({{"max_tokens", 5}}));
  EXPECT_FALSE(full["usage"].contains("kv_policy"));
  const Json explained = fixture.ask(
      "/cache/explain",
      story_body({{"prompt", repeated(" Tom and Lily.", 30)}, {"kv_policy", "window:50"}}));
  EXPECT_EQ(explained["kv_policy"]["name"], "window:50");
  EXPECT_EQ(explained["kv_policy"]["tokens_kept"], 49);
}

// A value of /metrics that has the model's name as its only label.
std::uint64_t counted(StoryFixture& fixture, const std::string& name) {
  const std::string page = fixture.get("/metrics").body;
  const std::size_t at = page.find("\n" + name + "{");
  if (at == std::string::npos) return ~std::uint64_t{0};
  return std::stoull(page.substr(page.find("} ", at) + 2));
}

TEST(KvPolicyApi, MetricsCountPagesThatPoliciesDropped) {
  StoryFixture fixture;
  const std::string name = "pagoda:kv_policy_dropped_pages_total";
  fixture.complete(story_body({{"max_tokens", 100}}));
  EXPECT_EQ(counted(fixture, name), 0u);
  std::uint64_t pages = 0;
  for (const char* const policy : {"streaming:4+40", "window:40", "h2o:64+16"}) {
    const Json reply = fixture.complete(story_body({{"max_tokens", 120}, {"kv_policy", policy}}));
    const auto tokens = reply["usage"]["kv_policy"]["tokens_dropped"].get<std::uint64_t>();
    // Whole blocks of 16 tokens, of one group of layers; the block of the sinks stays.
    const std::uint64_t now = counted(fixture, name);
    EXPECT_GT(now, pages) << policy;
    EXPECT_LE(now - pages, tokens / 16) << policy;
    pages = now;
  }
}

// The usage of a request whose policy selects pages: whole blocks of 16 tokens go.
TEST(KvPolicyApi, SelectsPagesByAttention) {
  StoryFixture& fixture = policy_fixture();
  const std::string prompt = repeated(" Tom and Lily.", 30);
  struct Row {
    Json policy;
    const char* name;
    bool grows;  // with the output
  };
  const std::vector<Row> rows = {
      {{{"type", "h2o"}, {"budget", 64}, {"recent", 16}}, "h2o:64+16", false},
      {"h2o:64+16", "h2o:64+16", false},
      {{{"type", "h2o"}, {"budget", 64}}, "h2o:64+32", false},
      {{{"type", "snapkv"}, {"budget", 64}, {"window", 16}, {"kernel", 3}}, "snapkv:64+16/3", true},
      {{{"type", "snapkv"}, {"budget", 64}}, "snapkv:64+32", true}};
  for (const Row& row : rows) {
    const Json reply = fixture.complete(
        story_body({{"prompt", prompt}, {"max_tokens", 100}, {"kv_policy", row.policy}}));
    const Json usage = reply["usage"];
    EXPECT_EQ(usage["kv_policy"]["name"], row.name);
    const auto all = usage["total_tokens"].get<std::uint64_t>();
    const auto kept = usage["kv_policy"]["tokens_kept"].get<std::uint64_t>();
    const auto dropped = usage["kv_policy"]["tokens_dropped"].get<std::uint64_t>();
    EXPECT_EQ(kept + dropped, all) << row.name;
    EXPECT_EQ(dropped % 16, 0u) << row.name;
    EXPECT_LE(kept, row.grows ? 164u : 64u) << row.name;
    EXPECT_EQ(reply["truncated"], true);
    // Asked again, the answer is the same, and the observed tokens are computed again.
    const Json again = fixture.complete(story_body({{"prompt", prompt},
                                                    {"max_tokens", 100},
                                                    {"kv_policy", row.policy},
                                                    {"cache_explain", true}}));
    EXPECT_EQ(again["choices"][0]["text"], reply["choices"][0]["text"]) << row.name;
    EXPECT_GT(again["usage"]["prompt_tokens_details"]["cached_tokens"], 0);
    EXPECT_EQ(again["cache_explain"]["reason"], "observed") << again["cache_explain"];
  }
  const Json short_reply =
      fixture.complete(story_body({{"max_tokens", 5}, {"kv_policy", "h2o:64+16"}}));
  EXPECT_EQ(short_reply["usage"]["kv_policy"]["tokens_dropped"], 0);
  EXPECT_FALSE(short_reply.contains("truncated"));
  const Json explained = fixture.ask(
      "/cache/explain",
      story_body({{"prompt", prompt}, {"max_tokens", 100}, {"kv_policy", "snapkv:64+16"}}));
  EXPECT_EQ(explained["kv_policy"]["name"], "snapkv:64+16");
  EXPECT_GT(explained["kv_policy"]["tokens_dropped"], 0);
}

// Distances grow with the text: past the context the model has never seen them.
TEST(KvPolicyApi, SelectedPagesEndAtTheContext) {
  StoryFixture& fixture = policy_fixture();
  const HttpReply reply = fixture.post(
      kCompletionsPath, story_body({{"max_tokens", kStoryContext}, {"kv_policy", "h2o:64+16"}}));
  EXPECT_EQ(reply.status, 400);
  EXPECT_THAT(reply.body, HasSubstr("the context holds 512"));
}

TEST(KvPolicyApi, LetsPromptAndOutputPassTheContext) {
  StoryFixture& fixture = policy_fixture();
  const Json reply = fixture.complete(
      story_body({{"max_tokens", 3 * kStoryContext}, {"kv_policy", "streaming:4+60"}}));
  EXPECT_EQ(reply["usage"]["completion_tokens"], 3 * kStoryContext);
  const std::string long_prompt = repeated(" Tom and Lily.", 300);
  const Json read = fixture.complete(
      story_body({{"prompt", long_prompt}, {"max_tokens", 8}, {"kv_policy", "streaming:4+60"}}));
  EXPECT_GT(read["usage"]["prompt_tokens"], kStoryContext);
  EXPECT_EQ(read["usage"]["completion_tokens"], 8);
  const HttpReply full =
      fixture.post(kCompletionsPath, story_body({{"prompt", long_prompt}, {"max_tokens", 8}}));
  EXPECT_EQ(full.status, 400);
  const Json chat = fixture.ask("/v1/chat/completions",
                                {{"messages", {{{"role", "user"}, {"content", long_prompt}}}},
                                 {"max_tokens", 8},
                                 {"kv_policy", "streaming:4+60"}});
  EXPECT_GT(chat["usage"]["prompt_tokens"], kStoryContext);
}

// Each API counts in words of its own; what the policy kept and dropped has one name in all.
TEST(KvPolicyApi, OtherApisTakeItAndTellItToo) {
  StoryFixture& fixture = policy_fixture();
  const std::string question = "Tell me of Tom.";
  const Json messages = {{{"role", "user"}, {"content", question}}};
  const Json bounded = {{"ignore_eos", true}, {"kv_policy", "streaming:4+60"}};
  // The next token would see the sinks, and 59 tokens before itself.
  const auto expect_told = [](const Json& policy, const Json& input, const Json& output) {
    const std::uint64_t all = input.get<std::uint64_t>() + 700;
    EXPECT_EQ(output, 700);
    EXPECT_EQ(
        policy,
        Json({{"name", "streaming:4+60"}, {"tokens_kept", 63}, {"tokens_dropped", all - 63}}));
  };
  Json body = bounded;
  body.update({{"input", question}, {"max_output_tokens", 700}});
  Json usage = fixture.ask("/v1/responses", body)["usage"];
  expect_told(usage["kv_policy"], usage["input_tokens"], usage["output_tokens"]);
  body = bounded;
  body.update({{"messages", messages}, {"max_tokens", 700}});
  usage = fixture.ask("/v1/messages", body)["usage"];
  const std::uint64_t input =
      usage["input_tokens"].get<std::uint64_t>() + usage["cache_read_input_tokens"].get<int>();
  expect_told(usage["kv_policy"], input, usage["output_tokens"]);
  body = bounded;
  body.update({{"messages", messages}, {"stream", false}, {"options", {{"num_predict", 700}}}});
  const Json reply = fixture.ask("/api/chat", body);
  expect_told(reply["kv_policy"], reply["prompt_eval_count"], reply["eval_count"]);
  EXPECT_FALSE(
      fixture.ask("/v1/responses", {{"input", question}, {"max_output_tokens", 2}})["usage"]
          .contains("kv_policy"));
}

// FixedQuality knows that streaming passes and that windows fail, and refuses what does not pass if
// it is told so.
class FixedQuality final : public PolicyQuality {
 public:
  Judgement judge(const kv::KvPolicy& policy) override {
    if (policy.is_full() || policy.sinks > 0) return {.verdict = Verdict::kPasses};
    if (policy.selects_pages()) return {.is_refused = refuses};
    return {.verdict = Verdict::kFails, .is_refused = refuses, .reason = "mean KL 0.64"};
  }

  bool refuses = false;
};

TEST(KvPolicyApi, SaysWhetherThePriceOfAPolicyWasMeasured) {
  StoryFixture fixture;
  FixedQuality quality;
  fixture.set_policy_quality(&quality);
  const auto told = [&](const char* path, const char* policy) {
    Json body = {{"kv_policy", policy}};
    const std::string words = "Once upon a time";
    body[std::string(path) == kCompletionsPath ? "prompt" : "input"] = words;
    if (std::string(path) == "/v1/responses") body["max_output_tokens"] = 4;
    const Json usage = fixture.ask(path, body)["usage"];
    return usage["kv_policy"].value("quality", "nothing");
  };
  for (const char* const path : {kCompletionsPath, "/v1/responses", "/v1/embeddings"}) {
    EXPECT_EQ(told(path, "streaming:4+40"), "passes") << path;
    EXPECT_EQ(told(path, "window:40"), "fails") << path;
  }
  EXPECT_EQ(told(kCompletionsPath, "h2o:64+16"), "not measured");
  fixture.set_policy_quality(nullptr);
  EXPECT_EQ(told(kCompletionsPath, "window:40"), "nothing");
}

TEST(KvPolicyApi, RefusesPoliciesWithoutAVerdictThatPassesWhereItIsTold) {
  StoryFixture fixture;
  FixedQuality quality;
  quality.refuses = true;
  fixture.set_policy_quality(&quality);
  const auto asked = [&](const Json& policy) {
    return fixture.post(kCompletionsPath, story_body({{"max_tokens", 2}, {"kv_policy", policy}}));
  };
  EXPECT_EQ(asked("streaming:4+40").status, 200);
  EXPECT_EQ(asked("full").status, 200);
  EXPECT_EQ(asked(nullptr).status, 200);
  for (const auto& [policy, why] : {std::pair("window:40", "mean KL 0.64"),
                                    std::pair("h2o:64+16", "has no measured quality here")}) {
    const HttpReply reply = asked(policy);
    ASSERT_EQ(reply.status, 400) << policy;
    const Json error = Json::parse(reply.body)["error"];
    EXPECT_EQ(error["param"], "kv_policy");
    EXPECT_EQ(error["code"], "kv_policy_refused");
    EXPECT_THAT(error["message"].get<std::string>(), HasSubstr(why));
    for (const char* const path : {"/v1/chat/completions", "/v1/messages", "/cache/explain"}) {
      const Json messages = {{{"role", "user"}, {"content", "Once"}}};
      EXPECT_EQ(
          fixture.post(path, {{"messages", messages}, {"max_tokens", 2}, {"kv_policy", policy}})
              .status,
          400)
          << path;
    }
    EXPECT_EQ(fixture.post("/v1/embeddings", {{"input", "Once"}, {"kv_policy", policy}}).status,
              400);
  }
}

TEST(KvPolicyApi, RefusesWhatIsNoPolicyByItsField) {
  StoryFixture& fixture = policy_fixture();
  struct Row {
    Json policy;
    const char* param;
    const char* message;
  };
  const std::vector<Row> rows = {
      {7, "kv_policy", "expected an object or a string"},
      {"h2o", "kv_policy", "expected full, window:W, streaming:S+W"},
      {{{"type", "tova"}}, "kv_policy.type", "expected"},
      {{{"type", "h2o"}}, "kv_policy.budget", "is missing"},
      {{{"type", "h2o"}, {"budget", 64}, {"recent", 64}}, "kv_policy", "fewer than the budget"},
      {{{"type", "h2o"}, {"budget", 64}, {"recent", 0}}, "kv_policy.recent", ""},
      {"h2o:64+70", "kv_policy", "recent tokens must be"},
      {{{"type", "snapkv"}, {"budget", 64}, {"kernel", 4}}, "kv_policy", "an odd number"},
      {{{"type", "snapkv"}, {"budget", "x"}}, "kv_policy.budget", ""},
      {"snapkv:513", "kv_policy", "keeps 513 tokens, but the context holds 512"},
      {Json::object(), "kv_policy.type", "expected"},
      {{{"type", "window"}}, "kv_policy.window", "is missing"},
      {{{"type", "window"}, {"window", 0}}, "kv_policy.window", ""},
      {{{"type", "window"}, {"window", "many"}}, "kv_policy.window", ""},
      {{{"type", "streaming"}, {"window", 9}}, "kv_policy.sinks", "is missing"},
      {{{"type", "streaming"}, {"sinks", -1}, {"window", 9}}, "kv_policy.sinks", ""},
      {"window:513", "kv_policy", "keeps 513 tokens, but the context holds 512"}};
  for (const Row& row : rows) {
    const HttpReply reply =
        fixture.post(kCompletionsPath, story_body({{"max_tokens", 2}, {"kv_policy", row.policy}}));
    ASSERT_EQ(reply.status, 400) << row.policy;
    const Json error = Json::parse(reply.body)["error"];
    EXPECT_EQ(error["param"], row.param) << row.policy;
    EXPECT_THAT(error["message"].get<std::string>(), HasSubstr(row.message)) << row.policy;
  }
}

// A client may name as many as it likes: beyond what the cache holds of them the server says so,
// and the policies of others go on.
TEST(KvPolicyApi, SurvivesAClientThatNamesThousandsOfPolicies) {
  StoryFixture fixture;
  for (int window = 1; window <= 500; ++window) {
    const HttpReply reply = fixture.post(
        kCompletionsPath,
        story_body({{"max_tokens", 1}, {"kv_policy", "window:" + std::to_string(window)}}));
    ASSERT_EQ(reply.status, 200) << window << reply.body;
  }
  EXPECT_EQ(fixture.complete(story_body(
                {{"max_tokens", 2}, {"kv_policy", "window:3"}}))["usage"]["completion_tokens"],
            2);
  EXPECT_EQ(fixture.complete(story_body({{"max_tokens", 2}}))["usage"]["completion_tokens"], 2);
}

TEST(KvPolicyApi, ASessionIsFetchedUnderItsOwnPolicy) {
  StoryFixture fixture;
  const Json chat = {
      {"messages", {{{"role", "user"}, {"content", repeated(" Tom and Lily.", 12)}}}},
      {"max_tokens", 2},
      {"kv_policy", "streaming:4+60"},
      {"prompt_cache_key", "agent"}};
  const Json reply = fixture.ask("/v1/chat/completions", chat);
  const Json fetched = fixture.ask("/cache/prefetch", {{"session", "agent"}});
  EXPECT_EQ(fetched["cached_tokens"], reply["usage"]["prompt_tokens"].get<std::uint64_t>() - 1);
}

}  // namespace
}  // namespace pagoda::server
