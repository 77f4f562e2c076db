// A conversation with a summary in the place of its older turns.
#include "chat/compaction.h"

#include <gtest/gtest.h>

namespace pagoda::chat {
namespace {

using text::ChatJson;

ChatJson talk(std::string_view roles) {
  ChatJson messages = ChatJson::array();
  for (const char role : roles) {
    messages.push_back({{"role", role == 's'   ? "system"
                                 : role == 'u' ? "user"
                                               : "assistant"},
                        {"content", std::to_string(messages.size())}});
  }
  return messages;
}

std::string spoken(const ChatJson& messages) {
  std::string text;
  for (const ChatJson& message : messages) {
    text += message["role"].get<std::string>().substr(0, 1) + ":" +
            message["content"].get<std::string>() + " ";
  }
  return text;
}

TEST(Compaction, TheLastTurnsStayAndASummaryAloneIsLeft) {
  EXPECT_EQ(kept_turns_begin(talk("suauaua"), 1), 5u);
  EXPECT_EQ(kept_turns_begin(talk("suauaua"), 2), 3u);
  EXPECT_EQ(kept_turns_begin(talk("suauaua"), 3), std::nullopt);
  EXPECT_EQ(kept_turns_begin(talk("suauau"), 1), 5u) << "a question without an answer is a turn";
  EXPECT_EQ(kept_turns_begin(ChatJson::array(), 1), std::nullopt);
  const ChatJson compacted = with_summary(talk("suaua"), 3, "All of it.");
  EXPECT_EQ(kept_turns_begin(compacted, 1), std::nullopt) << "nothing but a summary is older";
}

TEST(Compaction, AsksBehindTheOlderTurnsAndPutsTheAnswerInTheirPlace) {
  const std::string asked(kSummaryRequest);
  const ChatJson messages = talk("suasuaua");
  EXPECT_EQ(spoken(summary_question(messages, 4)), "s:0 u:1 a:2 s:3 u:" + asked + " ");
  EXPECT_EQ(spoken(with_summary(messages, 4, "Short.")),
            "s:0 s:3 u:" + asked + " a:Short. u:4 a:5 u:6 a:7 ");
}

TEST(Compaction, ASummaryIsSummarisedWithTheTurnsBehindIt) {
  ChatJson messages = with_summary(talk("suaua"), 3, "First.");
  for (const ChatJson& message : talk("uaua")) messages.push_back(message);
  const auto begin = kept_turns_begin(messages, 1);
  ASSERT_TRUE(begin);
  EXPECT_NE(spoken(summary_question(messages, *begin)).find("a:First."), std::string::npos);
  const std::string again = spoken(with_summary(messages, *begin, "Second."));
  EXPECT_EQ(again.find("First."), std::string::npos);
  EXPECT_EQ(again, "s:0 u:" + std::string(kSummaryRequest) + " a:Second. u:2 a:3 ");
}

}  // namespace
}  // namespace pagoda::chat
