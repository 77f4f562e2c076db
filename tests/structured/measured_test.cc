// Patterns together with minLength and maxLength: both hold, and no text is begun that cannot end.
#include <random>
#include <regex>

#include "structured/grammar_cases.h"

namespace pagoda::structured {
namespace {

using Json = nlohmann::ordered_json;

struct MeasuredCase {
  std::string pattern;
  std::uint32_t least;
  std::uint32_t most;  // kUnbounded: none
};

const std::vector<MeasuredCase>& measured_cases() {
  static const std::vector<MeasuredCase> kCases = {{"^[ab]+(-[ab]+)*$", 3, 6},
                                                   {"^[ab]+(-[ab]+)*$", 0, 1},
                                                   {"^(ab)+$", 3, 5},
                                                   {"^(aa)*(bbb)*$", 5, 7},
                                                   {"^(aa)*(bbb)*$", 7, 7},
                                                   {"^(a|b-){2,3}$", 3, 5},
                                                   {"^a?b?-?$", 2, 2},
                                                   {"^(a?b?){0,3}-$", 4, kUnbounded},
                                                   {"^(aab|b)*$", 4, kUnbounded},
                                                   {"^(a|bb)+-$|^-a*$", 2, 4},
                                                   {"a-b", 4, 5},
                                                   {"^[ab]{2}(-[ab]{1,2})?$", 3, 4}};
  return kCases;
}

std::shared_ptr<const Grammar> grammar_of(const MeasuredCase& one) {
  Json schema = {{"type", "string"}, {"pattern", one.pattern}, {"minLength", one.least}};
  if (one.most != kUnbounded) schema["maxLength"] = one.most;
  const auto grammar = grammar_from_schema(schema);
  EXPECT_TRUE(grammar.ok()) << one.pattern << ": " << grammar.error().message;
  return grammar.value();
}

// All texts of up to 7 of three letters, judged by the standard library's expressions.
TEST(MeasuredTest, PatternAndLengthBothHold) {
  for (const MeasuredCase& one : measured_cases()) {
    const auto grammar = grammar_of(one);
    const std::regex expression(one.pattern);
    std::vector<std::string> texts = {""};
    for (std::size_t i = 0; i < texts.size(); ++i) {
      const std::string text = texts[i];
      const bool wanted = text.size() >= one.least && text.size() <= one.most &&
                          std::regex_search(text, expression);
      EXPECT_EQ(matches_text(*grammar, Json(text).dump()), wanted)
          << one.pattern << " " << one.least << " to " << one.most << ": " << text;
      if (text.size() == 7) continue;
      for (const char letter : {'a', 'b', '-'}) texts.push_back(text + letter);
    }
  }
}

// What the mask allows at every step leads to an end.
TEST(MeasuredTest, NoTextIsBegunThatCannotEnd) {
  std::vector<std::string> bytes;
  for (int byte = 0; byte < 256; ++byte) bytes.emplace_back(1, static_cast<char>(byte));
  const std::vector<TokenId> ends = {TokenId(256)};
  const auto vocabulary = MaskVocabulary::build(std::move(bytes), ends, 257);
  std::mt19937 random(7);
  for (const MeasuredCase& one : measured_cases()) {
    const auto grammar = grammar_of(one);
    for (int round = 0; round < 60; ++round) {
      Matcher matcher(grammar, vocabulary);
      std::vector<MaskWord> mask(vocabulary->words());
      std::string text;
      while (text.size() < 40) {
        ASSERT_TRUE(matcher.fill_mask(mask).ok());
        std::vector<std::uint32_t> allowed;
        for (std::uint32_t id = 0; id < 257; ++id) {
          if (((mask[id / (8 * sizeof(MaskWord))] >> (id % (8 * sizeof(MaskWord)))) & 1) != 0) {
            allowed.push_back(id);
          }
        }
        ASSERT_FALSE(allowed.empty()) << one.pattern << " is stuck behind " << text;
        const std::uint32_t next = allowed[random() % allowed.size()];
        if (next == 256) break;
        text += static_cast<char>(next);
        ASSERT_TRUE(matcher.accept(TokenId(next)).ok());
      }
      if (text.size() == 40) continue;
      EXPECT_TRUE(matches_text(*grammar, text)) << one.pattern << text;
    }
  }
}

TEST(MeasuredTest, CountsCodePointsAndEscapesOnce) {
  expect_cases({{R"({"type":"string","pattern":"^(é|\"|😀)(x|y)*$","minLength":2,"maxLength":3})",
                 {R"("éx")", R"("\"xy")", R"("😀yy")"},
                 {R"("é")", R"("\"")", R"("😀xyx")"}},
                {R"({"type":"string","format":"email","maxLength":12})",
                 {R"("a@example.de")", R"("abc@mail.com")"},
                 {R"("ab@example.de")"}},
                {R"({"type":"string","pattern":"^[a-z]+(-[a-z]+)*$","minLength":3,"maxLength":20})",
                 {R"("abc")", R"("a-b")", R"("twelve-letters-wide")"},
                 {}}},
               schema_grammar);
}

// Pydantic's and zod's schemas have both keywords beside each other, many times.
TEST(MeasuredTest, ManyFieldsOfASchemaFitTheLimits) {
  Json schema = {{"type", "object"}, {"properties", Json::object()}};
  for (int i = 0; i < 40; ++i) {
    schema["properties"]["field" + std::to_string(i)] = {
        {"type", "string"},
        {"pattern", "^[a-z0-9]+(?:[._-][a-z0-9]+)*$"},
        {"minLength", 1},
        {"maxLength", 255}};
  }
  const auto grammar = grammar_from_schema(schema);
  ASSERT_TRUE(grammar.ok()) << grammar.error().message;
  EXPECT_TRUE(matches_text(*grammar.value(), R"({"field0":"a.b-c","field39":"z"})"));
  EXPECT_FALSE(matches_text(*grammar.value(), R"({"field0":"a.-c"})"));
}

}  // namespace
}  // namespace pagoda::structured
