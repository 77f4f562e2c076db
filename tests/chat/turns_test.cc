// Which messages go together, and in which order they go.
#include "chat/turns.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <string>

namespace pagoda::chat {
namespace {

using text::ChatJson;

// A conversation by letters: s system, d developer, u user, a assistant, c a call without an id,
// C an assistant's two parallel calls, t a result without an id. "x1" is a message with the call 1,
// "r1" its result.
ChatJson conversation(std::string_view letters) {
  ChatJson messages = ChatJson::array();
  const auto call = [](std::string id) {
    ChatJson one = {{"type", "function"}, {"function", {{"name", "f"}, {"arguments", "{}"}}}};
    if (!id.empty()) one["id"] = std::move(id);
    return one;
  };
  for (std::size_t i = 0; i < letters.size(); ++i) {
    const char letter = letters[i];
    ChatJson message = {{"role", "assistant"}, {"content", std::string(1, letter)}};
    if (letter == 's') message["role"] = "system";
    if (letter == 'd') message["role"] = "developer";
    if (letter == 'u') message["role"] = "user";
    if (letter == 't') message["role"] = "tool";
    if (letter == 'c') message["tool_calls"] = ChatJson::array({call("")});
    if (letter == 'C') message["tool_calls"] = ChatJson::array({call(""), call("")});
    if (letter == 'x') message["tool_calls"] = ChatJson::array({call({letters[++i]})});
    if (letter == 'r') {
      message["role"] = "tool";
      message["tool_call_id"] = std::string(1, letters[++i]);
    }
    messages.push_back(std::move(message));
  }
  return messages;
}

std::string text_of(const std::vector<MessageRange>& ranges) {
  std::string text;
  for (const MessageRange& range : ranges) {
    text += std::to_string(range.begin) + "-" + std::to_string(range.end) + " ";
  }
  return text;
}

TEST(Turns, BeginWithTheUsersWordsBehindAnAnswer) {
  EXPECT_EQ(text_of(turns_of(conversation("uaua"))), "0-2 2-4 ");
  EXPECT_EQ(text_of(turns_of(conversation("suauua"))), "0-3 3-6 ") << "two questions in a row";
  EXPECT_EQ(text_of(turns_of(conversation("auau"))), "0-1 1-3 3-4 ") << "a greeting";
  EXPECT_EQ(text_of(turns_of(conversation("uctau"))), "0-4 4-5 ");
  EXPECT_EQ(text_of(turns_of(conversation("s"))), "0-1 ");
  EXPECT_EQ(text_of(turns_of(ChatJson::array())), "");
}

TEST(Turns, WhatMayGoIsInTheOrderInWhichItGoes) {
  struct Row {
    const char* messages;
    const char* oldest;
    const char* middle;
  };
  const std::vector<Row> rows = {
      {"u", "", ""},
      {"su", "", ""},
      {"suau", "0-3 ", ""},
      {"suauau", "0-3 3-5 ", "3-5 "},
      {"suasuau", "0-4 4-6 ", "4-6 "},
      {"uauaua", "0-2 2-4 ", "2-4 "},
      // Steps of the last turn go behind whole turns; the last step stays.
      {"suctctct", "2-4 4-6 ", "2-4 4-6 "},
      {"suauctct", "0-3 4-6 ", "4-6 "},
      {"suauCttct", "0-3 4-7 ", "4-7 "},
      {"uctac", "1-3 3-4 ", "1-3 3-4 "},
      // Results by id belong to their calls, however far away.
      {"ux1ux2r1r2au", "0-7 ", ""},
      {"ux1r1ux2r2u", "0-3 3-6 ", "3-6 "},
      {"ux1uar1ua", "0-5 ", ""},
      {"ux1ur1", "", ""},
      {"uaux1ux2r2r1a", "0-2 ", ""},
      {"ssd", "", ""},
  };
  for (const Row& row : rows) {
    const ChatJson messages = conversation(row.messages);
    EXPECT_EQ(text_of(droppable_ranges(messages, DropOrder::kOldest)), row.oldest) << row.messages;
    EXPECT_EQ(text_of(droppable_ranges(messages, DropOrder::kMiddle)), row.middle) << row.messages;
  }
}

TEST(Turns, SystemMessagesStayWhereverTheyAre) {
  const ChatJson messages = conversation("suadua");
  const std::vector<MessageRange> ranges = droppable_ranges(messages, DropOrder::kOldest);
  ASSERT_EQ(text_of(ranges), "0-4 ");
  EXPECT_EQ(kept_messages(messages, ranges), (std::vector<std::uint32_t>{0, 3, 4, 5}));
  const ChatJson picked = pick_messages(messages, std::vector<std::uint32_t>{0, 3});
  ASSERT_EQ(picked.size(), 2u);
  EXPECT_EQ(picked[1]["role"], "developer");
}

// SDKs that write all fields of a message write nulls: they are no calls.
TEST(Turns, ACallThatIsNullIsNone) {
  ChatJson messages = conversation("suaux1ur1au");
  for (ChatJson& message : messages) message.erase("tool_call_id");  // results of the call before
  const auto expected = droppable_ranges(messages, DropOrder::kOldest);
  for (ChatJson& message : messages) message["function_call"] = nullptr;
  const auto ranges = droppable_ranges(messages, DropOrder::kOldest);
  ASSERT_EQ(ranges.size(), expected.size());
  for (std::size_t k = 0; k < ranges.size(); ++k) {
    EXPECT_EQ(kept_messages(messages, std::span(ranges).first(k)),
              kept_messages(messages, std::span(expected).first(k)));
  }
}

// Every conversation of up to seven messages: whatever goes, no result is left without its call and
// no call without its results, and the last message stays.
TEST(Turns, NoPairIsEverTakenApart) {
  const std::string letters = "suaxyrq";  // x, y: calls 1 and 2; r, q: their results
  std::vector<std::size_t> digits(7, 0);
  std::size_t checked = 0;
  const auto check = [&](const std::string& word) {
    std::string spelled;
    bool has_x = false;
    bool has_y = false;
    for (const char letter : word) {
      if ((letter == 'r' && !has_x) || (letter == 'q' && !has_y)) return;
      has_x = has_x || letter == 'x';
      has_y = has_y || letter == 'y';
      spelled += letter == 'x' ? "x1" : letter == 'y' ? "x2" : "";
      spelled += letter == 'r' ? "r1" : letter == 'q' ? "r2" : "";
      if (letter == 's' || letter == 'u' || letter == 'a') spelled += letter;
    }
    const ChatJson messages = conversation(spelled);
    for (const DropOrder order : {DropOrder::kOldest, DropOrder::kMiddle}) {
      const std::vector<MessageRange> ranges = droppable_ranges(messages, order);
      for (std::size_t count = 0; count <= ranges.size(); ++count) {
        const auto kept = kept_messages(messages, std::span(ranges).first(count));
        std::vector<bool> stays(messages.size(), false);
        for (const std::uint32_t index : kept) stays[index] = true;
        ASSERT_TRUE(stays.back()) << word;
        for (std::size_t i = 0; i < word.size(); ++i) {
          if (word[i] == 's') {
            ASSERT_TRUE(stays[i]) << word;
          }
          if (word[i] != 'r' && word[i] != 'q') continue;
          const std::size_t call = word.rfind(word[i] == 'r' ? 'x' : 'y', i);
          ASSERT_EQ(stays[i], stays[call]) << word << " without " << count;
        }
        ++checked;
      }
    }
  };
  for (std::size_t length = 1; length <= 6; ++length) {
    std::fill(digits.begin(), digits.end(), 0);
    for (bool more = true; more;) {
      std::string word;
      for (std::size_t i = 0; i < length; ++i) word += letters[digits[i]];
      check(word);
      if (testing::Test::HasFatalFailure()) return;
      more = false;
      for (std::size_t i = 0; i < length && !more; ++i) {
        digits[i] = (digits[i] + 1) % letters.size();
        more = digits[i] != 0;
      }
    }
  }
  EXPECT_GT(checked, 100'000u);
}

TEST(Turns, TheFewestGoThatMakeItFit) {
  for (std::size_t ranges = 0; ranges <= 20; ++ranges) {
    for (std::size_t least = 0; least <= ranges; ++least) {
      for (std::size_t need = 0; need <= ranges + 1; ++need) {
        std::size_t asked = 0;
        const auto found = fewest_dropped(ranges, least, [&](std::size_t count) {
          ++asked;
          return count >= need;
        });
        ASSERT_EQ(found.has_value(), need <= ranges);
        if (found) {
          ASSERT_EQ(*found, std::max(need, least));
        }
        ASSERT_LE(asked, 7u) << "a search by halves";
      }
    }
  }
  EXPECT_FALSE(fewest_dropped(0, 1, [](std::size_t) { return true; }));
}

// While a conversation grows, what goes changes once in a while, not with every turn.
TEST(Turns, AGrowingConversationKeepsItsBeginning) {
  constexpr std::uint64_t kTurn = 100;
  constexpr std::uint64_t kFits = 2000;
  constexpr std::uint64_t kChunk = 500;
  std::size_t changes = 0;
  std::size_t last = 0;
  std::vector<std::uint64_t> bytes;
  for (std::size_t turn = 0; turn < 200; ++turn) {
    bytes.push_back(kTurn);
    const std::uint64_t all = std::accumulate(bytes.begin(), bytes.end(), kTurn);
    if (all <= kFits) continue;
    const std::size_t least = (all - kFits + kTurn - 1) / kTurn;
    const std::size_t count = steady_count(bytes, least, kChunk);
    ASSERT_GE(count, least);
    ASSERT_LE(count, least + kChunk / kTurn);
    changes += count != last ? 1 : 0;
    last = count;
  }
  EXPECT_EQ(changes, 180u / (kChunk / kTurn) + 1) << "and not 181";
  EXPECT_EQ(steady_count(bytes, 199, 1'000'000), 199u) << "no multiple is near";
}

TEST(Turns, TextBytesAreThoseOfAllStrings) {
  EXPECT_EQ(text_bytes(ChatJson::parse(R"({"a": "four", "b": [{"c": "xy"}, 7, null], "d": ""})")),
            6u);
}

}  // namespace
}  // namespace pagoda::chat
