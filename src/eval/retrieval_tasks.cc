#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <string_view>
#include <utility>

#include "base/random.h"
#include "eval/task.h"
#include "text/prompt_tokens.h"

namespace pagoda::eval {
namespace {

constexpr std::uint64_t kTaskSeed = 2023;
constexpr std::uint64_t kAnswerRoom = 160;  // tokens of a template, a question and its answer
constexpr std::uint32_t kNumberTokens = 12;
constexpr std::uint32_t kNeedleLengths[] = {512, 1024, 2048, 4096};
constexpr std::uint32_t kNeedleDepths[] = {10, 50, 90};  // percent
constexpr std::uint32_t kRecallPairs[] = {8, 40};
constexpr std::uint32_t kRecallPairTokens = 24;  // at most, by small vocabularies
constexpr std::uint32_t kRecallQuestions = 5;    // of each
constexpr std::uint32_t kCopies = 10;
constexpr std::uint32_t kCopiedWords = 16;
constexpr std::uint32_t kGivenWords = 3;     // of a copy, which the answer begins with
constexpr std::uint32_t kComparedWords = 6;  // of a copy, behind those
constexpr std::uint32_t kCopyTokens = 32;
constexpr std::uint32_t kCopyRoom = 512;

// Words that no text has, so that they can be had from the prompt alone.
std::string made_up_word(std::uint64_t stream, std::uint64_t index) {
  static constexpr const char* kOnsets[] = {"b", "d", "f", "g", "k", "l", "m",  "n",
                                            "p", "r", "s", "t", "v", "z", "br", "tr"};
  static constexpr const char* kVowels[] = {"a", "e", "i", "o", "u", "ai", "ou", "ea"};
  std::string word;
  std::uint64_t bits = random_bits(kTaskSeed, stream, index);
  for (int syllable = 0; syllable < 3; ++syllable) {
    word += kOnsets[bits % 16];
    word += kVowels[bits / 16 % 8];
    bits /= 128;
  }
  return word;
}

std::string capitalised(std::string word) {
  word.front() = static_cast<char>(std::toupper(static_cast<unsigned char>(word.front())));
  return word;
}

// Five digits.
std::uint64_t made_up_number(std::uint64_t stream, std::uint64_t index) {
  return 10'000 + random_bits(kTaskSeed, stream, index) % 90'000;
}

// The prompt of a question whose answer is begun with `begun`.
std::vector<TokenId> prompt_of(const TaskModel& model, const std::string& question,
                               const std::string& begun) {
  if (model.chat != nullptr) {
    text::Conversation conversation;
    conversation.messages.push_back({{"role", "user"}, {"content", question}});
    conversation.messages.push_back({{"role", "assistant"}, {"content", begun}});
    conversation.add_generation_prompt = false;
    conversation.continue_final_message = true;
    const Result<text::OriginText> rendered = model.chat->render(conversation);
    if (rendered.ok()) return text::tokenise_prompt(rendered.value(), model.tokenizer).ids;
  }
  std::vector<TokenId> tokens =
      model.tokenizer.encode(fmt::format("{}\n\n{}", question, begun), {.add_bos_eos = true});
  if (model.tokenizer.add_eos()) tokens.pop_back();
  return tokens;
}

std::string text_of(const text::Tokenizer& tokenizer, std::span<const TokenId> answer) {
  const Result<std::string> text = tokenizer.decode(answer, false);
  return text.ok() ? text.value() : std::string();
}

bool is_digit(char c) { return c >= '0' && c <= '9'; }

// Is the first number of an answer this one?
std::function<bool(std::span<const TokenId>)> gives_number(const text::Tokenizer& tokenizer,
                                                           std::uint64_t number) {
  return [&tokenizer, number](std::span<const TokenId> answer) {
    const std::string text = text_of(tokenizer, answer);
    const auto begin = std::find_if(text.begin(), text.end(), is_digit);
    const auto end = std::find_if_not(begin, text.end(), is_digit);
    return std::string(begin, end) == fmt::format("{}", number);
  };
}

// The paragraphs of a text with the tokens of each.
struct Paragraphs {
  std::vector<std::string> texts;
  std::vector<std::size_t> tokens;
};
Paragraphs paragraphs_of(const text::Tokenizer& tokenizer, const std::string& text) {
  Paragraphs found;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find("\n\n", at), text.size());
    found.texts.push_back(text.substr(at, end - at));
    found.tokens.push_back(tokenizer.encode(found.texts.back(), {}).size() + 1);
    at = end + 2;
  }
  return found;
}

// Returns the text's first paragraphs of about `tokens` tokens, with the needle behind `depth`
// percent of them; empty where the text is shorter.
std::string hide(const Paragraphs& paragraphs, std::uint64_t tokens, std::uint32_t depth,
                 const std::string& needle) {
  std::size_t count = 0;
  std::uint64_t sum = 0;
  while (count < paragraphs.texts.size() && sum + paragraphs.tokens[count] <= tokens) {
    sum += paragraphs.tokens[count++];
  }
  if (count == 0 || (count == paragraphs.texts.size() && sum * 10 < tokens * 9)) return {};
  std::string text;
  std::uint64_t before = 0;
  bool is_hidden = false;
  for (std::size_t i = 0; i < count; ++i) {
    if (!is_hidden && before * 100 >= sum * depth) {
      text += needle + "\n\n";
      is_hidden = true;
    }
    before += paragraphs.tokens[i];
    text += paragraphs.texts[i] + "\n\n";
  }
  return is_hidden ? text : text + needle + "\n\n";
}

Task needle_task(const TaskModel& model, const std::string& haystack) {
  Task task = {.name = "needle", .questions = {}};
  const Paragraphs paragraphs = paragraphs_of(model.tokenizer, haystack);
  std::vector<std::uint64_t> lengths;
  for (const std::uint32_t length : kNeedleLengths) {
    if (length + kAnswerRoom <= model.context_tokens) lengths.push_back(length);
  }
  if (lengths.empty() && model.context_tokens > 2 * kAnswerRoom) {
    lengths.push_back(model.context_tokens - kAnswerRoom);
  }
  std::uint64_t index = 0;
  for (const std::uint64_t length : lengths) {
    for (const std::uint32_t depth : kNeedleDepths) {
      const std::string place = capitalised(made_up_word(1, index));
      const std::uint64_t number = made_up_number(2, index++);
      const std::string needle =
          fmt::format("The secret number of the lighthouse at {} is {}.", place, number);
      const std::string text = hide(paragraphs, length, depth, needle);
      if (text.empty()) continue;
      std::vector<TokenId> prompt = prompt_of(
          model, fmt::format("{}What is the secret number of the lighthouse at {}?", text, place),
          fmt::format("The secret number of the lighthouse at {} is", place));
      if (prompt.size() + kNumberTokens > model.context_tokens) continue;
      task.questions.push_back({.cell = fmt::format("{} tokens, depth {} %", length, depth),
                                .prompt = std::move(prompt),
                                .tokens_max = kNumberTokens,
                                .is_right = gives_number(model.tokenizer, number)});
    }
  }
  return task;
}

// Five of `pairs` keys, whose names and values are those of their own stream.
void add_recalls(const TaskModel& model, std::uint32_t pairs, std::uint64_t stream, Task& task) {
  std::string list;
  for (std::uint32_t i = 0; i < pairs; ++i) {
    list += fmt::format("The code of {} is {}.\n", capitalised(made_up_word(stream, i)),
                        made_up_number(stream + 1, i));
  }
  for (std::uint32_t i = 0; i < kRecallQuestions; ++i) {
    const std::uint32_t pair = (2 * i + 1) * pairs / (2 * kRecallQuestions);
    const std::string name = capitalised(made_up_word(stream, pair));
    std::vector<TokenId> prompt =
        prompt_of(model, fmt::format("{}\nWhat is the code of {}?", list, name),
                  fmt::format("The code of {} is", name));
    if (prompt.size() + kNumberTokens > model.context_tokens) continue;
    task.questions.push_back(
        {.cell = fmt::format("{} keys", pairs),
         .prompt = std::move(prompt),
         .tokens_max = kNumberTokens,
         .is_right = gives_number(model.tokenizer, made_up_number(stream + 1, pair))});
  }
}

Task recall_task(const TaskModel& model) {
  Task task = {.name = "recall", .questions = {}};
  std::uint64_t stream = 10;
  for (const std::uint32_t pairs : kRecallPairs) {
    if (pairs * kRecallPairTokens <= model.context_tokens) add_recalls(model, pairs, stream, task);
    stream += 2;
  }
  return task;
}

// Common words, each once, in the order of a number.
std::vector<std::string> shuffled_words(std::uint64_t order) {
  std::vector<std::string> words = {"river",  "stone",  "window", "garden", "letter", "bridge",
                                    "winter", "market", "silver", "table",  "forest", "paper",
                                    "engine", "summer", "candle", "mirror", "island", "basket",
                                    "doctor", "yellow", "ladder", "pocket", "hammer", "castle"};
  for (std::size_t i = words.size(); i > 1; --i) {
    std::swap(words[i - 1], words[random_bits(kTaskSeed, 1000 + order, i) % i]);
  }
  words.resize(kCopiedWords);
  return words;
}

Task copy_task(const TaskModel& model) {
  Task task = {.name = "copy", .questions = {}};
  if (model.context_tokens < kCopyRoom) return task;
  for (std::uint32_t copy = 0; copy < kCopies; ++copy) {
    const std::vector<std::string> words = shuffled_words(copy);
    const auto joined = [&](std::uint32_t begin, std::uint32_t end) {
      return fmt::format("{}", fmt::join(words.begin() + begin, words.begin() + end, " "));
    };
    const std::string expected = joined(kGivenWords, kGivenWords + kComparedWords);
    std::vector<TokenId> prompt = prompt_of(
        model, fmt::format("Repeat this text word for word:\n\n{}", joined(0, kCopiedWords)),
        joined(0, kGivenWords));
    if (prompt.size() + kCopyTokens > model.context_tokens) continue;
    task.questions.push_back(
        {.cell = fmt::format("{} words", kCopiedWords),
         .prompt = std::move(prompt),
         .tokens_max = kCopyTokens,
         .is_right = [&tokenizer = model.tokenizer, expected](std::span<const TokenId> answer) {
           // The first space may be a part of the word, or of what came before.
           const std::string text = text_of(tokenizer, answer);
           return text.starts_with(expected) || text.starts_with(" " + expected);
         }});
  }
  return task;
}

}  // namespace

std::vector<Task> retrieval_tasks(const TaskModel& model, const std::string& haystack) {
  std::vector<Task> tasks;
  for (Task& task :
       std::vector<Task>{needle_task(model, haystack), recall_task(model), copy_task(model)}) {
    if (!task.questions.empty()) tasks.push_back(std::move(task));
  }
  return tasks;
}

}  // namespace pagoda::eval
