// Tasks scored on models that are functions: one that reads its prompt, one that does not.
#include "eval/task.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <regex>

#include "eval/document.h"
#include "gguf/file.h"
#include "test_data.h"

namespace pagoda::eval {
namespace {

using testing::HasSubstr;

class Tasks : public testing::Test {
 protected:
  explicit Tasks(const std::string& model = "stories260K.gguf")
      : file_(gguf::File::open(test_data() + "/models/" + model).value()),
        tokenizer_(text::Tokenizer::load(file_.metadata()).value()) {}

  TaskModel plain_model(std::uint64_t context) const {
    return {.tokenizer = *tokenizer_, .context_tokens = context};
  }
  std::string text_of(const TaskQuestion& question) const {
    return tokenizer_->decode(question.prompt, true).value();
  }
  std::vector<TokenId> tokens_of(const std::string& text) const {
    return tokenizer_->encode(text, {.special = true});
  }

  // Answers by what stands in the prompt: behind the place where the prompt's last words stood
  // before.
  Answerer reading() const {
    return [this](std::span<const TaskQuestion> questions) {
      std::vector<std::vector<TokenId>> answers;
      for (const TaskQuestion& question : questions) {
        const std::string prompt = text_of(question);
        const std::string begun = prompt.substr(prompt.rfind("\n\n") + 2);
        const std::size_t at = prompt.find(begun);
        const std::size_t end = prompt.find_first_of(".\n", at + begun.size());
        answers.push_back(tokens_of(prompt.substr(at + begun.size(), end - at - begun.size())));
      }
      return Result<std::vector<std::vector<TokenId>>>(std::move(answers));
    };
  }
  Answerer saying(const std::string& text) const {
    return [this, text](std::span<const TaskQuestion> questions) {
      return Result<std::vector<std::vector<TokenId>>>(
          std::vector<std::vector<TokenId>>(questions.size(), tokens_of(text)));
    };
  }

  gguf::File file_;
  std::unique_ptr<text::Tokenizer> tokenizer_;
  const std::string haystack_ = read_document("").value().text;
};

TEST_F(Tasks, WhoReadsThePromptHasAllRightAndWhoDoesNotHasNothing) {
  const std::vector<Task> tasks = retrieval_tasks(plain_model(16384), haystack_);
  ASSERT_EQ(tasks.size(), 3u);
  EXPECT_EQ(tasks[0].name, "needle");
  EXPECT_EQ(tasks[1].name, "recall");
  EXPECT_EQ(tasks[2].name, "copy");
  const auto read = answer_tasks(tasks, reading(), nullptr).value();
  const auto blind = answer_tasks(tasks, saying(" 12345."), &read).value();
  for (std::size_t i = 0; i < tasks.size(); ++i) {
    EXPECT_EQ(read[i].asked, tasks[i].questions.size());
    EXPECT_EQ(read[i].right, read[i].asked) << tasks[i].name;
    EXPECT_TRUE(read[i].model_can());
    EXPECT_EQ(blind[i].right, 0u) << tasks[i].name;
    EXPECT_EQ(blind[i].right_baseline, read[i].right);
    EXPECT_TRUE(blind[i].model_can()) << "the baseline can";
  }
  EXPECT_FALSE(answer_tasks(tasks, saying(""), nullptr).value()[0].model_can());
}

TEST_F(Tasks, ANeedleStandsAtItsDepthOfTextsOfEveryLengthThatFits) {
  const Task needle = retrieval_tasks(plain_model(16384), haystack_).front();
  ASSERT_EQ(needle.questions.size(), 12u);
  std::size_t at = 0;
  for (const std::uint32_t length : {512u, 1024u, 2048u, 4096u}) {
    for (const std::uint32_t depth : {10u, 50u, 90u}) {
      const TaskQuestion& question = needle.questions[at++];
      EXPECT_EQ(question.cell,
                std::to_string(length) + " tokens, depth " + std::to_string(depth) + " %");
      EXPECT_NEAR(static_cast<double>(question.prompt.size()), length, 0.1 * length + 160);
      const std::string text = text_of(question);
      const double place = 100.0 * static_cast<double>(text.find("The secret number")) /
                           static_cast<double>(text.find("What is the secret number"));
      EXPECT_NEAR(place, depth, 15) << question.cell;
    }
  }
}

TEST_F(Tasks, QuestionsThatDoNotFitAreLeftOut) {
  for (const std::uint64_t context : {200u, 512u, 1200u}) {
    for (const Task& task : retrieval_tasks(plain_model(context), haystack_)) {
      EXPECT_FALSE(task.questions.empty());
      for (const TaskQuestion& question : task.questions) {
        EXPECT_LE(question.prompt.size() + question.tokens_max, context) << task.name;
      }
    }
  }
}

TEST_F(Tasks, ANumberIsRightAloneAndNotAsAPartOfAnother) {
  const Task recall = retrieval_tasks(plain_model(16384), haystack_)[1];
  const TaskQuestion& question = recall.questions.front();
  const std::string prompt = text_of(question);
  std::smatch found;
  const std::string begun = prompt.substr(prompt.rfind("\n\n") + 2);
  ASSERT_TRUE(std::regex_search(prompt, found, std::regex(begun + R"( (\d+)\.)")));
  const std::string number = found[1];
  EXPECT_TRUE(question.is_right(tokens_of(" " + number + ".")));
  EXPECT_TRUE(question.is_right(tokens_of(" the number " + number)));
  EXPECT_FALSE(question.is_right(tokens_of(" " + number + "0.")));
  EXPECT_FALSE(question.is_right(tokens_of(" 1 " + number)));
  EXPECT_FALSE(question.is_right({}));
}

class ToolCalls : public Tasks {
 protected:
  ToolCalls()
      : Tasks("scripted_calls.gguf"),
        chat_(text::ChatTemplate::load(file_.metadata(), *tokenizer_).value()),
        form_(chat::find_served_form(chat_, *tokenizer_).value()) {}

  Task task() const {
    TaskModel model = plain_model(16384);
    model.chat = &chat_;
    model.form = &form_;
    return tool_call_task(model).value().value();
  }

  text::ChatTemplate chat_;
  chat::ServedForm form_;
};

TEST_F(ToolCalls, AreRightWhereTheirArgumentsAreValid) {
  const Task calls = task();
  ASSERT_EQ(calls.questions.size(), 4u);
  EXPECT_THAT(text_of(calls.questions[0]), HasSubstr("get_weather"));
  EXPECT_THAT(text_of(calls.questions[0]), HasSubstr("Lisbon"));
  struct Case {
    const char* call;
    bool is_right;
  };
  for (const Case& c :
       {Case{R"({"name": "get_weather", "arguments": {"city": "Lisbon"}})", true},
        Case{R"({"name": "get_weather", "arguments": {"unit": "celsius", "city": "L"}})", true},
        Case{R"({"name": "get_weather", "arguments": {"unit": "kelvin", "city": "L"}})", false},
        Case{R"({"name": "get_weather", "arguments": {"unit": "celsius"}})", false},
        Case{R"({"name": "get_weather", "arguments": {"city": 3}})", false},
        Case{R"({"name": "get_weather", "arguments": {"city": "L", "day": 1}})", false},
        Case{R"({"name": "get_weather", "arguments": {"city": "Lisbon})", false},
        Case{R"({"name": "set_alarm", "arguments": {"city": "Lisbon"}})", false},
        Case{R"(Lisbon is warm.)", false}}) {
    const std::string text = std::string("<tool_call>\n") + c.call + "\n</tool_call>";
    EXPECT_EQ(calls.questions[0].is_right(tokens_of(text)), c.is_right) << c.call;
  }
  EXPECT_FALSE(calls.questions[0].is_right(tokens_of("It is warm.")));
}

TEST_F(ToolCalls, AreNotAskedForWithoutATemplate) {
  EXPECT_FALSE(tool_call_task(plain_model(16384)).value().has_value());
}

}  // namespace
}  // namespace pagoda::eval
