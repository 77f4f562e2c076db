// What becomes of a conversation in the terminal when its context is full.
#include "app/chat_session.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

namespace pagoda::app {
namespace {

// Takes a letter for a token. Its replies are of one length, and it remembers what it was asked.
class CountingModel final : public ChatModel {
 public:
  explicit CountingModel(std::uint64_t context) : context_(context) {}

  std::string name() const override { return "counting"; }
  Result<std::uint64_t> context_tokens() override {
    if (!tells_context) return Error{ErrorCode::kNotFound, "unknown"};
    return context_;
  }
  void fill(const text::ChatJson& messages) override { filled.push_back(messages); }
  Result<ChatReply> complete(const text::ChatJson& messages, const ChatSampling& sampling,
                             const std::function<void(std::string_view)>& on_text,
                             const std::function<bool()>& /*stopped*/) override {
    const std::uint64_t tokens = chat::text_bytes(messages);
    if (tokens + 10 > context_) return Error{ErrorCode::kOutOfRange, "too long"};
    asked.push_back(messages);
    temperatures.push_back(sampling.fields.temperature);
    const bool is_summary = messages.back()["content"] == std::string(chat::kSummaryRequest);
    ChatReply reply;
    reply.text = is_summary ? summary : "0123456789";
    reply.finish_reason = "stop";
    reply.prompt_tokens = tokens;
    reply.output_tokens = reply.text.size();
    on_text(reply.text);
    return reply;
  }

  bool tells_context = true;
  std::string summary = "in short";
  std::vector<text::ChatJson> asked;
  std::vector<text::ChatJson> filled;
  std::vector<std::optional<double>> temperatures;

 private:
  std::uint64_t context_;
};

TEST(ChatSession, GoesOnWhenTheContextIsFull) {
  CountingModel model(500);
  ChatSessionOptions options;
  options.system = "be brief";
  ChatSession session(model, options);
  for (int i = 0; i < 60; ++i) {
    const std::string question = "question " + std::to_string(i);
    ASSERT_TRUE(session.ask(question).ok()) << i;
    EXPECT_EQ(model.asked.back().front()["content"], "be brief");
    EXPECT_EQ(model.asked.back().back()["content"], question);
    EXPECT_EQ(model.asked.back()[1]["role"], "user") << "turns go as a whole";
  }
  // A quarter goes at a time: the first question that is left changes seldom.
  int changes = 0;
  for (std::size_t i = 1; i < model.asked.size(); ++i) {
    changes += model.asked[i][1]["content"] != model.asked[i - 1][1]["content"] ? 1 : 0;
  }
  EXPECT_GT(changes, 2);
  EXPECT_LT(changes, 20);
}

// A pipe's stdout is buffered, and stderr is not.
TEST(ChatSession, TheClosingLineIsALineOfItsOwnWhereAllGoesToOnePipe) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  std::fflush(stdout);
  const int out = dup(STDOUT_FILENO);
  const int err = dup(STDERR_FILENO);
  std::vector<char> buffer(1 << 12);
  std::setvbuf(stdout, buffer.data(), _IOFBF, buffer.size());
  dup2(ends[1], STDOUT_FILENO);
  dup2(ends[1], STDERR_FILENO);
  CountingModel model(500);
  const ChatSessionOptions options;
  ChatSession session(model, options);
  const bool went_well = session.ask("question").ok();
  std::fflush(stdout);
  dup2(out, STDOUT_FILENO);
  dup2(err, STDERR_FILENO);
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  for (const int end : {out, err, ends[1]}) close(end);
  ASSERT_TRUE(went_well);
  std::string text(1 << 12, '\0');
  const ssize_t bytes = read(ends[0], text.data(), text.size());
  close(ends[0]);
  ASSERT_GT(bytes, 0);
  text.resize(static_cast<std::size_t>(bytes));
  EXPECT_EQ(text.find("0123456789\n[TTFT "), 0u) << text;
}

TEST(ChatSession, MiddleKeepsTheFirstTurn) {
  CountingModel model(500);
  ChatSessionOptions options;
  options.truncation = chat::DropOrder::kMiddle;
  ChatSession session(model, options);
  for (int i = 0; i < 40; ++i) ASSERT_TRUE(session.ask("question " + std::to_string(i)).ok()) << i;
  EXPECT_EQ(model.asked.back()[0]["content"], "question 0");
  EXPECT_NE(model.asked.back()[2]["content"], "question 1");
}

TEST(ChatSession, WithoutTruncationAFullContextIsAnErrorAndNothingIsLost) {
  CountingModel model(200);
  ChatSessionOptions options;
  options.truncation = std::nullopt;
  ChatSession session(model, options);
  Status last = ok_status();
  while (last.ok()) last = session.ask("question");
  EXPECT_EQ(last.error().code, ErrorCode::kOutOfRange);
  EXPECT_EQ(session.messages().size(), 2 * model.asked.size());
}

TEST(ChatSession, AQuestionThatIsTooLongOnItsOwnIsAnError) {
  CountingModel model(200);
  const ChatSessionOptions options;
  ChatSession session(model, options);
  EXPECT_FALSE(session.ask(std::string(300, 'x')).ok());
  EXPECT_TRUE(session.messages().empty());
  EXPECT_TRUE(session.ask("short").ok());
  EXPECT_TRUE(session.ask("another").ok());
  // What was left out to make room for it in vain is there again.
  EXPECT_FALSE(session.ask(std::string(300, 'x')).ok());
  EXPECT_EQ(session.messages().size(), 4u);
}

TEST(ChatSession, OlderTurnsBecomeASummaryThatIsFilledAhead) {
  CountingModel model(2000);
  ChatSessionOptions options;
  options.compact_at = 0.5;
  options.keep_turns = 2;
  options.sampling.fields.temperature = 0.9;
  ChatSession session(model, options);
  int i = 0;
  while (model.filled.empty()) {
    ASSERT_LT(i, 100);
    ASSERT_TRUE(session.ask("a question of some length, number " + std::to_string(i++)).ok());
  }
  EXPECT_EQ(model.asked.back().back()["content"], std::string(chat::kSummaryRequest));
  EXPECT_EQ(model.temperatures.back(), 0.0);
  const text::ChatJson& messages = session.messages();
  EXPECT_EQ(messages, model.filled.back());
  ASSERT_EQ(messages.size(), 6u) << "the summary's turn and two turns";
  EXPECT_EQ(messages[1]["content"], "in short");
  EXPECT_EQ(messages[2]["content"], "a question of some length, number " + std::to_string(i - 2));
  // Again, with the first summary among what is summarised.
  while (model.filled.size() < 2) {
    ASSERT_LT(i, 200);
    ASSERT_TRUE(session.ask("a question of some length, number " + std::to_string(i++)).ok());
  }
  EXPECT_EQ(model.asked.back()[1]["content"], "in short");
  EXPECT_EQ(session.messages().size(), 6u);
}

TEST(ChatSession, WhereThereIsNoSummaryTheConversationStays) {
  CountingModel model(1200);
  model.summary = " \n";
  ChatSessionOptions options;
  options.compact_at = 0.5;
  ChatSession session(model, options);
  for (int i = 0; i < 18; ++i) ASSERT_TRUE(session.ask("a question of some length").ok());
  EXPECT_TRUE(model.filled.empty());
  EXPECT_EQ(session.messages().size(), 36u);
  CountingModel silent(1200);
  silent.tells_context = false;
  ChatSession without(silent, options);
  for (int i = 0; i < 18; ++i) ASSERT_TRUE(without.ask("a question of some length").ok());
  EXPECT_EQ(silent.asked.size(), 18u) << "no summary is asked for";
}

}  // namespace
}  // namespace pagoda::app
