// What turns lose, on templates whose behaviour can be read in their source.
#include "chat/turn_check.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <sstream>

#include "test_data.h"
#include "text/vocabularies.h"

namespace pagoda::chat {
namespace {

text::ChatTemplate made_template(const std::string& source) {
  auto parsed = text::ChatTemplate::parse("made", source, {"<s>", "</s>"});
  EXPECT_TRUE(parsed.ok()) << (parsed.ok() ? "" : parsed.error().message);
  return std::move(parsed).value();
}

// Every message with its role; reasoning is written where `condition` holds.
std::string turn_template(const std::string& condition) {
  return "{%- for m in messages %}[{{ m.role }}]"
         "{%- if m.role == 'assistant' and m.reasoning_content and (" +
         condition +
         ") %}<think>{{ m.reasoning_content }}</think>{% endif %}"
         "{{- m.content }}{% for c in m.tool_calls or [] %}<call>{{ c.function | tojson }}</call>"
         "{%- endfor %}{{ '\n' }}{%- endfor %}"
         "{%- if add_generation_prompt %}[assistant]{% endif %}";
}

const TurnScenario& scenario_of(const std::vector<TurnScenario>& all, const std::string& name) {
  const auto found = std::find_if(all.begin(), all.end(),
                                  [&](const TurnScenario& one) { return one.name == name; });
  EXPECT_NE(found, all.end()) << name;
  return *found;
}

std::vector<TurnScenario> checked(const text::ChatTemplate& chat) {
  const auto tokenizer = text::load_tokenizer(text::vocabulary_path("gpt-2"));
  return check_turns(chat, *tokenizer, find_form(chat).value(), 3);
}

TEST(TurnCheck, ATemplateThatKeepsEverythingLosesNothing) {
  const auto all = checked(made_template(turn_template("true")));
  for (const char* const name : {"chat, thinking off", "reasoning sent back"}) {
    const TurnScenario scenario = scenario_of(all, name);
    ASSERT_EQ(scenario.turns.size(), 3U) << scenario.refusal;
    for (const TurnLoss& turn : scenario.turns) {
      EXPECT_EQ(turn.lost_tokens(), 0U) << name << ": " << turn.was << " -> " << turn.became;
    }
  }
  const TurnScenario left_out = scenario_of(all, "reasoning left out");
  EXPECT_EQ(left_out.turns[0].cause, "reasoning_removed");
  EXPECT_NE(left_out.turns[0].fix.find("reasoning_content"), std::string::npos);
}

TEST(TurnCheck, RemovedReasoningIsNamedWithItsPriceAndItsFix) {
  const auto all = checked(made_template(turn_template("loop.last or preserve_thinking")));
  const TurnLoss& loss = scenario_of(all, "reasoning sent back").turns.at(0);
  EXPECT_EQ(loss.turn, 2U);
  EXPECT_EQ(loss.cause, "reasoning_removed");
  // The prompt stays; the answer goes from its first marker on.
  EXPECT_TRUE(loss.was.starts_with("<think>")) << loss.was;
  EXPECT_TRUE(loss.became.starts_with("This is answer")) << loss.became;
  const auto tokenizer = text::load_tokenizer(text::vocabulary_path("gpt-2"));
  const auto answer =
      tokenizer->encode("<think>I think about question 1.</think>This is answer 1.", {});
  EXPECT_EQ(loss.lost_tokens(), answer.size());
  EXPECT_NE(loss.fix.find("\"preserve_thinking\": true"), std::string::npos) << loss.fix;
  EXPECT_NE(loss.fix.find(": 0 of"), std::string::npos) << loss.fix;
}

TEST(TurnCheck, TextThatMovesIsNamed) {
  const auto all = checked(made_template(
      "{%- for m in messages %}{% if loop.last %}[now]{% endif %}[{{ m.role }}]{{ m.content }}"
      "{%- endfor %}{% if add_generation_prompt %}[assistant]{% endif %}"));
  EXPECT_EQ(scenario_of(all, "chat").turns.at(0).cause, "earlier_text_changes");
}

// What each of these templates does can be read in it.
TEST(TurnCheck, NamesWhatATemplateWritesAnew) {
  const auto with = [](const std::string& answer) {
    return made_template("{%- for m in messages %}[{{ m.role }}]{%- if m.role == 'assistant' %}" +
                         answer +
                         "{%- else %}{{ m.content }}{% endif %}{{ '\n' }}{%- endfor %}"
                         "{%- if add_generation_prompt %}[assistant]{% endif %}");
  };
  const std::string calls = "{% for c in m.tool_calls or [] %}<call>";
  struct Written {
    std::string answer;
    std::string conversation;
    std::string cause;
    std::string was;  // begins with
    std::string became;
  };
  const std::vector<Written> all = {
      {"{{ m.content }}" + calls + "{{ c.function | tojson(indent=1) }}</call>{% endfor %}",
       "tools", "call_written_anew", "", ""},
      {"{{ m.content | upper }}", "chat", "answer_written_anew", "This is answer",
       "THIS IS ANSWER"},
      {"{% if m.reasoning_content is defined or not loop.last %}<think>{{ m.reasoning_content }}"
       "</think>{% endif %}{{ m.content }}",
       "chat, thinking off", "reasoning_inserted", "This is answer", "<think></think>"},
  };
  for (const Written& one : all) {
    const TurnScenario scenario = scenario_of(checked(with(one.answer)), one.conversation);
    ASSERT_FALSE(scenario.turns.empty()) << scenario.refusal;
    const TurnLoss& loss = scenario.turns.at(0);
    EXPECT_EQ(loss.cause, one.cause) << loss.was << " -> " << loss.became;
    EXPECT_TRUE(loss.was.starts_with(one.was)) << loss.was;
    EXPECT_TRUE(loss.became.starts_with(one.became)) << loss.became;
    EXPECT_GT(loss.lost_tokens(), 0U);
    EXPECT_FALSE(loss.fix.empty());
  }
}

// What is known of published templates, read in their source.
TEST(TurnCheck, NamesWhatPublishedTemplatesDo) {
  struct Published {
    std::string name;
    std::string conversation;
    unsigned turn;
    std::string cause;  // empty: nothing is lost
  };
  const std::vector<Published> published = {
      {"qwen2.5", "chat", 2, ""},
      {"qwen2.5", "tools", 2, ""},
      // Reasoning behind the last question stays, so that a call keeps it; then it goes.
      {"qwen3", "reasoning sent back", 2, "reasoning_removed"},
      {"qwen3", "tools, reasoning sent back", 2, ""},
      {"qwen3", "tools, reasoning sent back", 3, "reasoning_removed"},
      // The system prompt and the tools stand before the last question.
      {"mistral_nemo", "chat", 2, "earlier_text_changes"},
      {"mistral_nemo", "tools", 3, "earlier_text_changes"},
      {"deepseek_v3.1", "reasoning sent back", 2, "reasoning_removed"},
      // The template has no place for calls: they are text of their message.
      {"smollm2", "tools", 2, ""},
  };
  for (const Published& one : published) {
    std::ifstream stream(test_data() + "/chat/templates/" + one.name + ".jinja");
    std::stringstream source;
    source << stream.rdbuf();
    const auto all = checked(made_template(source.str()));
    const TurnScenario scenario = scenario_of(all, one.conversation);
    ASSERT_GE(scenario.turns.size(), one.turn - 1) << one.name << ": " << scenario.refusal;
    const TurnLoss& loss = scenario.turns[one.turn - 2];
    EXPECT_TRUE(loss.cause == one.cause ||
                (one.cause.empty() && loss.cause == "tokenised_again" && loss.lost_tokens() < 3))
        << one.name << ", " << one.conversation << ": " << loss.cause << " " << loss.was << " -> "
        << loss.became;
  }
}

TEST(TurnCheck, ADateIsFound) {
  const auto tokenizer = text::load_tokenizer(text::vocabulary_path("gpt-2"));
  const std::string turns = "{% for m in messages %}{{ m.content }}{% endfor %}";
  EXPECT_TRUE(find_date(made_template("Today: {{ strftime_now('%d %B') }}." + turns), *tokenizer));
  EXPECT_FALSE(find_date(made_template(turns), *tokenizer));
}

}  // namespace
}  // namespace pagoda::chat
